# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands with a secure controller that has an endpoint for administrators."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from tests.integration.cli.cli_support import Cli
from tests.integration.collection.playbook import play
from tests.integration.collection.tasks import task
from tests.integration.collection.test_user_file import CERTS
from tests.integration.vipu_servers import Process, run
from tests.ports import free_port

ADMIN = "vipu-admin --config admin.vipu-cli.hcl"

Start = Callable[..., tuple[Process, Cli, int]]


@pytest.fixture
def endpoints(vipu_process: Callable[..., Process], tmp_path: Path) -> Start:
    """Return a factory of such controllers: the process, a runner of commands, and the port of administrators."""

    def make(*options: str) -> tuple[Process, Cli, int]:
        port = free_port()
        certs, database = tmp_path / "vipu-certs", tmp_path / "vipu-server.db"
        secure = ("--secure", "--admin-port", str(port), *options)
        made = run("--tls-init", str(certs), "--init", "--database", str(database), *secure)
        assert made.returncode == 0, made.stderr
        server = vipu_process("--certs", str(certs), *secure, channel=grpc.ssl_channel_credentials())
        assert server.ready.endswith(f" listening on {server.address}, for administrators on 127.0.0.1:{port}\n")
        cli = Cli(tmp_path)
        cli.out(f"{ADMIN} create agent ag1 --host 127.0.0.9 --port 1")
        cli.out(f"{ADMIN} create cluster cl0 --agents ag1")
        cli.out(f"{ADMIN} create allocation a1 --cluster cl0 --size 1")
        return server, cli, port

    return make


def port_in(file: Path) -> int:
    """Return the port in a configuration file."""
    (found,) = re.findall(r"(?m)^api-port=(\d+)$", file.read_text())
    return int(found)


def test_each_role_has_its_endpoint(endpoints: Start, tmp_path: Path) -> None:
    server, cli, port = endpoints()
    users = int(server.address.rpartition(":")[2])
    assert port_in(tmp_path / "admin.vipu-cli.hcl") == port
    cli.out(f"{ADMIN} create user alice --allocations a1")
    assert port_in(tmp_path / "alice.vipu-cli.hcl") == users
    assert cli.json("vipu --config alice.vipu-cli.hcl list partitions") == []
    assert [each["id"] for each in cli.json("vipu --config alice.vipu-cli.hcl list allocations")] == ["a1"]
    # A second administrator uses the same endpoint as the first one.
    cli.out(f"{ADMIN} create user root --role admin")
    assert port_in(tmp_path / "root.vipu-cli.hcl") == port
    assert [each["id"] for each in cli.json("vipu-admin --config root.vipu-cli.hcl list agents")] == ["ag1"]
    message = cli.failed(f"{ADMIN} --api-port {users} list agents")
    assert "offers only the public user API. Use the admin endpoint" in message


def test_administrators_on_both_endpoints(endpoints: Start) -> None:
    server, cli, port = endpoints("--admin-on-both")
    users = server.address.rpartition(":")[2]
    for each in (port, users):
        assert [agent["id"] for agent in cli.json(f"{ADMIN} --api-port {each} list agents")] == ["ag1"]


@pytest.mark.parametrize("fast_path", [True, False], ids=["action", "module"])
@pytest.mark.parametrize(("role", "administrators"), [("user", False), ("admin", True)])
def test_the_file_of_the_module(
    endpoints: Start, tmp_path: Path, role: str, administrators: bool, fast_path: bool
) -> None:
    server, cli, port = endpoints()
    key = re.findall(r'api-access-key="(.*)"', (tmp_path / "admin.vipu-cli.hcl").read_text())[0]
    controller = {
        "api_host": "127.0.0.1",
        "api_port": port,
        "api_user_id": "admin",
        "api_access_key": key,
        **{name: str(tmp_path / "vipu-certs" / "client" / file) for name, file in CERTS.items()},
    }
    tasks = [task("vipu_user", id="bob", role=role, config_dest=str(tmp_path / "bob.hcl"))]
    played = play(tmp_path, tasks, controller=controller, openipu_fast_path=fast_path)
    assert (played.failed, played.changed) == (0, 1), played.output
    assert port_in(tmp_path / "bob.hcl") == (port if administrators else int(server.address.rpartition(":")[2]))
    cli.out("vipu --config bob.hcl list partitions")
