# SPDX-License-Identifier: GPL-3.0-or-later
"""Three nodes of etcd use the certificates and the settings that the role ``etcd`` creates."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aetcd import rpc

from openipu.vipu.storage.etcd.client import EtcdClient, EtcdError
from openipu.vipu.storage.etcd.keys import Location, Tls
from tests import ROOT
from tests.ports import free_port
from tests.unit.collection.pod.inventories import run
from tests.waiting import until

ROLE = ROOT / "roles/etcd"
NODES = {f"n{number}": f"127.0.2.{number}" for number in (1, 2, 3)}


class Applied:
    """Files that the role creates for three hosts, in a folder, with the connection ``local``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = folder / "authority"
        self._port = free_port()
        # On loopback, connections do not come from the address in the certificate.
        skip = {"ETCD_EXPERIMENTAL_PEER_SKIP_CLIENT_SAN_VERIFICATION": "true"}
        self._variables = {
            "ansible_python_interpreter": sys.executable,
            "etcd_client_port": self._port,
            "etcd_peer_port": free_port(),
            "etcd_environment": skip,
            "etcd_authority_folder": str(self.authority),
            "ansible_managed": "test",
        }

    def apply(self, **variables: Any) -> int:
        """Create certificates and settings. Return the number of changes of certificates."""
        play: dict[str, Any] = {
            "hosts": "all",
            "connection": "local",
            "gather_facts": False,
            "tasks": [
                {"ansible.builtin.include_role": {"name": str(ROLE), "tasks_from": "authority", "public": True}},
                {
                    "ansible.builtin.template": {
                        "src": str(ROLE / "templates/etcd.env.j2"),
                        "dest": f"{self.folder}/{{{{ inventory_hostname }}}}.env",
                        "mode": "0600",
                    }
                },
            ],
        }
        hosts = {name: {"etcd_address": address} for name, address in NODES.items()}
        inventory, file = self.folder / "hosts.json", self.folder / "play.json"
        inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
        file.write_text(json.dumps([play]))
        values = {**self._variables, **variables}
        done = run("ansible-playbook", "-i", inventory, "-e", json.dumps(values), file)
        assert done.returncode == 0, done.stdout + done.stderr
        return sum(map(int, re.findall(r"changed=(\d+)", done.stdout)))

    def environment(self, node: str) -> dict[str, str]:
        """Return the settings of a node, with the paths of its files in the folder."""
        found = dict(re.findall(r'(?m)^(ETCD_\w+)="(.*)"$', (self.folder / f"{node}.env").read_text()))
        files = {"ca.crt": "ca.crt", "node.crt": f"{node}.crt", "node.key": f"{node}.key"}
        paths = {f"/etc/openipu/etcd/{name}": str(self.authority / file) for name, file in files.items()}
        return {name: paths.get(value, value) for name, value in found.items()} | {
            "ETCD_DATA_DIR": str(self.folder / node)
        }

    def location(self, *files: str) -> Location:
        """Return the cluster, with these files for clients."""
        tls = Tls(self.authority / "ca.crt", *(self.authority / file for file in files))
        return Location(tuple(f"{address}:{self._port}" for address in NODES.values()), tls=tls)


@pytest.fixture(scope="module")
def applied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    made = Applied(tmp_path_factory.mktemp("role"))
    assert made.apply()
    processes = []
    try:
        for node in NODES:
            with (made.folder / f"{node}.log").open("wb") as log:
                environment = {**os.environ, **made.environment(node)}
                processes.append(subprocess.Popen(["etcd"], env=environment, stdout=log, stderr=log))
        yield made
    finally:
        for process in processes:
            process.kill()
            process.wait()


def can_write(location: Location) -> bool:
    client = EtcdClient(location)
    try:
        client.call("KV", "Put", rpc.PutRequest(key=b"x", value=b"1"))
    except EtcdError:
        return False
    finally:
        client.close()
    return True


def test_controllers_can_write_with_their_certificate(applied: Applied) -> None:
    location = applied.location("client.crt", "client.key")
    until(lambda: can_write(location), 60, (applied.folder / "n1.log").read_text)


def test_clients_without_a_certificate_are_rejected(applied: Applied) -> None:
    until(lambda: can_write(applied.location("client.crt", "client.key")), 60, (applied.folder / "n1.log").read_text)
    assert not can_write(applied.location())


def test_only_the_owner_can_read_the_keys(applied: Applied) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in applied.authority.iterdir() if path.suffix == ".key"}
    assert modes == dict.fromkeys(["ca.key", "client.key", "n1.key", "n2.key", "n3.key"], 0o600)
    assert applied.authority.stat().st_mode & 0o777 == 0o700


def test_certificates_are_renewed_when_they_expire(applied: Applied) -> None:
    assert applied.apply() == 0
    before = (applied.authority / "n1.crt").read_text()
    key = (applied.authority / "n1.key").read_text()
    assert applied.apply(etcd_certificate_renew_within=826) == 4  # three nodes and the controllers
    assert (applied.authority / "n1.crt").read_text() != before
    assert (applied.authority / "n1.key").read_text() == key
