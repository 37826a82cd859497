# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of controllers with the public API only, of secure controllers, and of tasks on other hosts."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.vipu.tls import issue, load
from tests.integration.collection.playbook import play, results
from tests.integration.collection.tasks import AGENTS, NOTEBOOK, VISION, task
from tests.integration.vipu_servers import InProcess, InstantLife, Process, pod, run


def address_options(server: InProcess | Process) -> dict[str, Any]:
    """The connection options for a server."""
    host, port = server.address.rsplit(":", 1)
    return {"api_host": host, "api_port": int(port)}


@pytest.mark.parametrize("fast_path", [True, False], ids=["action", "module"])
def test_the_public_api_is_enough_for_partitions(
    vipu_server: Callable[..., InProcess], tmp_path: Path, fast_path: bool
) -> None:
    database = tmp_path / "pod.db"
    full = vipu_server(database, life=InstantLife)
    pod(full, machines=4, allocations={"team-a": 4})
    full.stop()
    server = vipu_server(database, life=InstantLife, public_only=True)
    variables = {"controller": address_options(server), "openipu_fast_path": fast_path}
    partitions = [
        task("vipu_partition", **VISION),
        task("vipu_pod", partitions=[VISION, NOTEBOOK, {**NOTEBOOK, "id": "other"}]),
        task("vipu_ipuof_config", id="vision", dest="vision.conf"),
        {**task("vipu_partition_info", id="vision", ipuof=True), "register": "info"},
        {
            "name": "Check the partition",
            "ansible.builtin.assert": {
                "that": [
                    "info.partitions[0].state == 'ACTIVE'",
                    "info.partitions[0].ipuof[0].devices | length == 4",
                ]
            },
        },
    ]
    for tasks, changed in ((partitions, 3), (partitions, 0)):
        played = play(tmp_path, tasks, **variables)
        assert (played.failed, played.changed) == (0, changed), played.output
    removal = [
        task("vipu_partition", id="vision", state="absent"),
        task("vipu_pod", partitions=[NOTEBOOK], prune=["partitions"]),
    ]
    assert play(tmp_path, removal, **variables).changed == 2
    rejected = play(tmp_path, [task("vipu_agent", **AGENTS[0])], **variables)
    assert rejected.failed == 1
    assert "offers only the public user API." in " ".join(rejected.output.split())


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    """Certificates of a secure controller."""
    issue.create(tmp_path / "vipu-certs", ["127.0.0.1"])
    return tmp_path / "vipu-certs"


def test_a_secure_controller(certs: Path, vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    server = vipu_process("--secure", "--certs", str(certs))
    client = certs / "client"
    with_tls = {
        **address_options(server),
        "ca_path": str(client / load.CA),
        "client_cert": str(client / "client.crt"),
        "client_key": str(client / "client.key"),
    }
    cases = [
        (with_tls, "Give a user id and its access key"),
        (
            {**with_tls, "api_user_id": "alice", "api_access_key": "AbCdEfGhIjK"},
            "the user id or its access key is wrong",
        ),
        (address_options(server), "If it uses TLS, set ca_path, client_cert and client_key"),
        (
            {**address_options(server), "ca_path": with_tls["ca_path"]},
            "it requires a client certificate signed by its CA",
        ),
        ({**with_tls, "ca_path": "/nonexistent/ca.pem"}, "Cannot read file '/nonexistent/ca.pem': no such file"),
    ]
    for connection, message in cases:
        played = play(tmp_path, [task("vipu_info")], "-vvv", controller=connection)
        text = " ".join(played.output.split())
        assert played.failed == 1
        assert message in text, text
        assert "AbCdEfGhIjK" not in text


@pytest.mark.parametrize("transport", ["grpc", "cli"])
def test_a_controller_with_other_metadata_keys(
    certs: Path, vipu_process: Callable[..., Process], tmp_path: Path, transport: str
) -> None:
    made = run("--init", "--secure", "--certs", str(certs), "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    key = re.search('api-access-key="(.*)"', (tmp_path / "admin.vipu-cli.hcl").read_text())
    assert key
    keys = ("--metadata-user-id-key", "x-user", "--metadata-access-key-key", "x-key")
    server = vipu_process("--secure", "--certs", str(certs), *keys)
    root = {"api_user_id": "admin", "api_access_key": key[1], "transport": transport}
    look = {**task("vipu_info", gather_subset=["users"]), "ignore_errors": True}
    named = {"metadata_user_id_key": "X-User", "metadata_access_key_key": "x-key"}
    environment = {"VIPU_CLI_METADATA_USER_ID_KEY": "x-user", "VIPU_CLI_METADATA_ACCESS_KEY_KEY": "x-key"}
    tasks = [
        look,
        {**look, "openipu.pod.vipu_info": {"gather_subset": ["users"], **named}},
        {**look, "environment": environment},
        {**look, "environment": environment, "vars": {"openipu_fast_path": False}},
        task("vipu_user", id="alice", config_dest="alice.hcl", **named),
    ]
    found = results(tmp_path, tasks, controller={**address_options(server), **tls_options(certs, certs), **root})
    assert [each["failed"] for each in found] == [True, False, False, False, False], found
    assert "user id" in found[0]["msg"]
    assert [user["id"] for user in found[1]["users"]] == ["admin"]
    content = (tmp_path / "alice.hcl").read_text()
    assert 'metadata-user-id-key="x-user"' in content and 'metadata-access-key-key="x-key"' in content


def tls_options(certs: Path, folder: Path) -> dict[str, str]:
    """The connection options of a client of a secure controller that trusts the authority of a folder."""
    client = certs / "client"
    return {
        "ca_path": str(folder / "client" / load.CA),
        "client_cert": str(client / "client.crt"),
        "client_key": str(client / "client.key"),
    }


def test_a_certificate_of_another_authority(certs: Path, vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    issue.create(tmp_path / "other", ["127.0.0.1"])
    server = vipu_process("--secure", "--certs", str(certs))
    connection = {**address_options(server), **tls_options(certs, tmp_path / "other")}
    played = play(tmp_path, [task("vipu_info")], controller=connection)
    assert "has a certificate that is not signed by the given CA. Check ca_path." in " ".join(played.output.split())


def test_an_expired_certificate(certs: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    issue.create(old, ["127.0.0.1"], datetime.timedelta(days=-1))
    # vipu-server does not start with an expired certificate, but a running one keeps using it, as this server does.
    server = grpc.server(futures.ThreadPoolExecutor(1))
    pair = ((old / "server" / "server.key").read_bytes(), (old / "server" / "server.crt").read_bytes())
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    try:
        connection = {"api_host": "127.0.0.1", "api_port": port, **tls_options(certs, old)}
        played = play(tmp_path, [task("vipu_info")], controller=connection)
    finally:
        server.stop(0).wait()
    assert "has an expired certificate. Renew it on the server." in " ".join(played.output.split())


def test_become_and_async_run_the_module(vipu_server: Callable[..., InProcess], tmp_path: Path) -> None:
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 2})
    tasks = [
        {**task("vipu_partition", **VISION), "become": True, "become_method": "ansible.builtin.su"},
        {**task("vipu_partition", **NOTEBOOK), "async": 30, "poll": 1},
        task("vipu_pod", agents=AGENTS[:2]),
    ]
    settings = {
        "controller": address_options(server),
        "ansible_pipelining": False,
    }  # so that modules are files and appear in the output
    played = play(tmp_path, tasks, "-vvv", **settings)
    assert played.failed == 0, played.output
    # Only modules are sent; the last task ran in place.
    assert played.output.count("AnsiballZ_vipu_partition.py") > 0
    assert "AnsiballZ_vipu_pod.py" not in played.output
    again = play(tmp_path, [task("vipu_pod", agents=AGENTS[:2])], "-vvv", **settings, openipu_fast_path=False)
    assert "AnsiballZ_vipu_pod.py" in again.output


@pytest.mark.parametrize("fast_path", [True, False], ids=["action", "module"])
def test_environment_variables_replace_omitted_options(
    vipu_server: Callable[..., InProcess], tmp_path: Path, fast_path: bool
) -> None:
    server = vipu_server(life=InstantLife)
    pod(server, machines=2, allocations={"team-a": 2})
    host, port = server.address.rsplit(":", 1)
    tasks = [
        {
            **task("vipu_info"),
            "environment": {"VIPU_CLI_API_HOST": host, "VIPU_CLI_API_PORT": port},
            "register": "info",
        },
        {"name": "Check the information", "ansible.builtin.assert": {"that": "info.allocations[0].id == 'team-a'"}},
        # Options override the environment, and the environment of a task does not affect the next one.
        {
            **task("vipu_info", api_host=host, api_port=1),
            "environment": {"VIPU_CLI_API_PORT": port},
            "ignore_errors": True,
        },
        {
            **task("vipu_info", api_host=host, api_port=int(port)),
            "environment": {"VIPU_CLI_CA_PATH": "/nonexistent"},
            "ignore_errors": True,
        },
        task("vipu_info", api_host=host, api_port=int(port)),
    ]
    found = results(tmp_path, tasks, controller={}, openipu_fast_path=fast_path)
    assert [each["failed"] for each in found] == [False, False, True, True, False]
    assert f"{host}:1 does not respond" in found[2]["msg"]
    assert "Cannot read file '/nonexistent'" in found[3]["msg"]
