# SPDX-License-Identifier: GPL-3.0-or-later
"""The role ``vipu_server`` restores a backup into etcd: all controllers stop, one restores, all start again."""

from __future__ import annotations

import getpass
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from aetcd import rpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import snapshot
from openipu.vipu.storage.etcd import content, keys
from openipu.vipu.storage.etcd.keys import Keys, Location
from openipu.vipu.storage.store import Store
from tests import ROOT
from tests.ha import service_manager
from tests.ha.controllers import START_SECONDS
from tests.ha.etcd_nodes import EtcdCluster
from tests.ha.replica import Replica
from tests.ha.service_manager import Unit
from tests.integration import vipu_servers
from tests.ports import free_port
from tests.unit.collection.pod.inventories import run
from tests.unit.vipu.storage.store_support import all_records, rack, write
from tests.waiting import until

ROLE = ROOT / "roles/vipu_server"
NAMES = ("c1", "c2", "c3")
OVERWRITE = {"vipu_server_restore_overwrite": True, "vipu_server_restore_lose_partitions": True}


class Hosts:
    """Three controllers with empty records in etcd, and a backup of the records of a rack."""

    def __init__(self, folder: Path, location: Location) -> None:
        self.folder, self.location = folder, location
        self.programs = folder / "programs"
        self.programs.mkdir()
        service_manager.install(self.programs)
        self.units = {name: Unit(self.programs, name) for name in NAMES}
        self._ports = {name: free_port() for name in NAMES}
        content.initialise(location)
        self.backup, self.records = self._back_up_rack()
        program = self.programs / "vipu-server"  # logs each use
        program.write_text(
            f"#!/bin/sh\ncd {ROOT}\necho $1 >> {self.programs}/actions\nexec {sys.executable} -m "
            'openipu.vipu.server.main "$@"\n'
        )
        program.chmod(0o755)
        for name, unit in self.units.items():
            self._host(name).mkdir()
            (self._host(name) / "certs").mkdir()
            (self._host(name) / "certs" / "former").touch()
            port = ("--port", str(self._ports[name]))
            server = (sys.executable, "-m", "openipu.vipu.server.main")
            unit.define(*server, "--store", str(location), "--no-admin", "--metrics-port", "0", *port)

    def start(self) -> None:
        """Start the controllers that are stopped, and wait until one leads and the others follow."""
        for unit in self.units.values():
            if not unit.active():
                unit.start()
        until(self.served, START_SECONDS, self.logs)

    def clear(self) -> None:
        """Remove the log of the actions."""
        (self.programs / "actions").unlink(missing_ok=True)

    def _host(self, name: str) -> Path:
        return self.folder / name

    def _back_up_rack(self) -> tuple[Path, object]:
        """Return a backup with certificates, and its records."""
        folder = self.folder / "origin"
        database, certs, archive = folder / "vipu-server.db", folder / "certs", folder / "backup.tar.gz"
        folder.mkdir()
        initialise(database)
        with closing(Store(database)) as store:
            write(store, store.load(), *all_records(rack()))
        made = vipu_servers.run("--tls-init", str(certs))
        assert made.returncode == 0, made.stderr
        made = vipu_servers.run("backup", "--database", str(database), "--certs", str(certs), str(archive))
        assert made.returncode == 0, made.stderr
        return archive, snapshot.from_database(database).records

    def health(self, name: str) -> int | None:
        with grpc.insecure_channel(f"127.0.0.1:{self._ports[name]}") as channel:
            try:
                return int(health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1).status)
            except grpc.RpcError:
                return None

    def served(self) -> bool:
        """Return whether one controller leads, and the others follow."""
        serving, not_serving = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
        return sorted(self.health(name) or 0 for name in NAMES) == sorted([serving, not_serving, not_serving])

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in self.programs.glob("*.log"))

    def actions(self) -> list[str]:
        log = self.programs / "actions"
        return log.read_text().splitlines() if log.exists() else []

    def files(self) -> dict[str, str]:
        """Return the files of all hosts."""
        paths = [path for name in NAMES for path in self._host(name).rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes().hex() for path in paths}

    def restore(self, *options: str, hosts: dict[str, dict[str, Any]] | None = None, **variables: Any) -> str:
        """Run the tasks of a restore on all hosts, and return the output. ``hosts``: further variables by host."""
        play: dict[str, Any] = {
            "hosts": "all",
            "connection": "local",
            "gather_facts": False,
            "force_handlers": True,
            "vars_files": [str(ROLE / "defaults/main.yml"), str(ROLE / "vars/main.yml")],
            "tasks": [
                # As a changed setting does.
                {"ansible.builtin.command": {"argv": ["true"]}, "changed_when": True, "notify": "Stop the controller"},
                {"ansible.builtin.include_tasks": str(ROLE / "tasks/restore.yml")},
            ],
            "handlers": [{"ansible.builtin.import_tasks": str(ROLE / "handlers/main.yml")}],
        }
        inventory = {name: (hosts or {}).get(name, {}) for name in NAMES}
        (self.folder / "hosts.json").write_text(json.dumps({"all": {"hosts": inventory}}))
        (self.folder / "play.json").write_text(json.dumps([play]))
        folder = f"{self.folder}/{{{{ inventory_hostname }}}}"
        values = {
            "ansible_python_interpreter": sys.executable,
            "vipu_server_service": "{{ inventory_hostname }}",
            "vipu_server_folder": folder,
            "vipu_server_certs": f"{folder}/certs",
            "vipu_server_backup_folder": folder,
            "vipu_server_store": str(self.location),
            "vipu_server_restore": str(self.backup),
            "vipu_server_controllers": list(NAMES),
            "vipu_server_waits": False,
            "vipu_server_user": getpass.getuser(),
            "vipu_server_as_user": [],
            "vipu_server_program": str(self.programs / "vipu-server"),
            **variables,
        }
        path = f"{self.programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        files = ["-i", str(self.folder / "hosts.json"), "-e", json.dumps(values), str(self.folder / "play.json")]
        done = run("ansible-playbook", *files, *options, PATH=path)
        return " ".join(re.sub(r"\\n", " ", done.stdout + done.stderr).split())

    def close(self) -> None:
        for unit in self.units.values():
            unit.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def running(etcd: EtcdCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    created = Hosts(tmp_path_factory.mktemp("hosts"), keys.parse(f"{etcd.url}/restore-role"))
    try:
        created.start()
        yield created
    finally:
        created.close()


@pytest.fixture
def hosts(running: Hosts) -> Hosts:
    """Hosts with running controllers, and no logged actions."""
    running.start()
    running.clear()
    return running


def reported(message: str, output: str) -> bool:
    """Return whether exactly one task on one host failed with a message."""
    return len(re.findall(rf'FAILED! => {{[^{{}}]*"msg": "{message}', output)) == 1


def test_check_mode_changes_nothing(hosts: Hosts) -> None:
    files, before = hosts.files(), content.read(hosts.location)
    output = hosts.restore("--check", **OVERWRITE)
    assert output.count("failed=0") == 3, output
    assert hosts.actions() == ["check"]
    assert hosts.files() == files
    assert content.read(hosts.location) == before
    assert hosts.served()


CLOSED = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": free_port()}
MISSING = "Cannot restore a backup into etcd://.*: all controllers must be stopped, and c3 is not reachable"


@pytest.mark.parametrize(
    ("message", "options", "variables", "actions"),
    [
        ("Cannot restore a backup into etcd://.*: it has records. The existing records were", [], {}, ["check"]),
        (MISSING, [], {"hosts": {"c3": CLOSED}, **OVERWRITE}, []),
        (MISSING, ["--limit", "c1,c2"], OVERWRITE, []),
        (
            "Cannot restore a backup on c1: .*Could not find or access '/nonexistent.tar.gz'",
            [],
            {"vipu_server_restore": "/nonexistent.tar.gz", **OVERWRITE},
            ["check"],
        ),
        (
            "Cannot restore a backup into etcd://.*: Cannot use the store .*: no node .*no controller was stopped",
            [],
            {"vipu_server_store": f"etcd://127.0.0.1:{free_port()}/none", **OVERWRITE},
            ["check"],
        ),
    ],
    ids=["existing-records", "unreachable", "limited", "no-backup", "failed-check"],
)
def test_one_message_before_the_first_stop(
    hosts: Hosts, message: str, options: list[str], variables: dict[str, Any], actions: list[str]
) -> None:
    files, before = hosts.files(), content.read(hosts.location)
    output = hosts.restore(*options, **variables)
    assert reported(message, output), output
    assert hosts.actions() == actions
    assert hosts.files() == files
    assert content.read(hosts.location) == before
    assert hosts.served()


def test_all_controllers_start_again_when_another_one_leads(hosts: Hosts) -> None:
    """None stops afterwards, although a setting of it changed."""
    before = content.read(hosts.location)
    for unit in hosts.units.values():
        unit.stop()
    other = Replica(hosts.location)
    other.lead()
    try:
        for unit in hosts.units.values():
            unit.start()
        hosts.clear()
        output = hosts.restore(vipu_server_lease_seconds=0.1, **OVERWRITE)
    finally:
        other.close()
    cause = "Cannot change the store .*: a controller uses it .127.0.0.1:1.. Stop all controllers first"
    assert reported(f"Cannot restore a backup on c1: {cause}. The existing records were not changed", output), output
    for name in ("c2", "c3"):
        assert reported(f"Cannot restore a backup on {name}: c1 failed or is not reachable", output), output
    assert sorted(hosts.actions()[-3:]) == ["start c1", "start c2", "start c3"]
    until(hosts.served, START_SECONDS, hosts.logs)
    assert content.read(hosts.location).records == before.records


def test_all_controllers_stop_before_one_restores(hosts: Hosts) -> None:
    output = hosts.restore(**OVERWRITE)
    assert output.count("failed=0") == 3, output
    assert "8 agents, 1 cluster, 3 allocations, 3 partitions and 3 users" in output
    actions = hosts.actions()
    assert sorted(actions[1:4]) == ["stop c1", "stop c2", "stop c3"], actions
    assert (actions[0], actions[4:6]) == ("check", ["backup", "restore"])
    assert not [action for action in actions if action.startswith("start")]
    assert content.read(hosts.location).records == hosts.records
    # The replaced records are in a backup. Further controllers copy the restored certificates of the first one.
    files = hosts.files()
    assert re.search(r"(?m)^c1/vipu-\S+Z[.]tar[.]gz$", "\n".join(files))
    assert not [name for name in files if name.endswith("/restore.tar.gz")]
    assert {name for name in files if name.endswith("former")} == {f"{c}/certs.before-restore/former" for c in NAMES}
    assert [name for name in files if name.endswith("certs/ca/ca.key")] == ["c1/certs/ca/ca.key"]
    hosts.start()


def test_damaged_records_are_replaced_without_a_backup(hosts: Hosts) -> None:
    with content.connected(hosts.location) as client:
        key = Keys(hosts.location.prefix).records + b"rack/r1"
        client.call("KV", "Put", rpc.PutRequest(key=key, value=b"{}"))
    output = hosts.restore(**OVERWRITE)
    assert output.count("failed=0") == 3, output
    assert [action for action in hosts.actions() if " " not in action] == ["check", "restore"]
    assert content.read(hosts.location).records == hosts.records
    hosts.start()
