# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of administrators and users with a secure controller."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from tests.integration.cli.cli_support import Cli, cells
from tests.integration.vipu_servers import Process, run
from tests.waiting import until


@pytest.fixture
def secure(vipu_process: Callable[..., Process], tmp_path: Path) -> Process:
    """Start a secure controller with new certificates, database and first administrator."""
    certs = tmp_path / "vipu-certs"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    return vipu_process("--secure", "--certs", str(certs), channel=grpc.ssl_channel_credentials())


@pytest.fixture
def secure_cli(secure: Process, tmp_path: Path) -> Cli:
    """Return a runner with controller and certificates in its environment, without a user."""
    client = tmp_path / "vipu-certs" / "client"
    return Cli(
        tmp_path,
        secure.address,
        VIPU_CLI_CA_PATH=str(client / "ca.crt"),
        VIPU_CLI_CLIENT_CERT=str(client / "client.crt"),
        VIPU_CLI_CLIENT_KEY=str(client / "client.key"),
    )


def test_administrator_and_user(secure_cli: Cli, lab: Any) -> None:
    cli, admin = secure_cli, "vipu-admin --config admin.vipu-cli.hcl"
    for agent in lab.rack.agents[2:6]:
        cli.out(f"{admin} create agent {agent.id} --host {agent.host} --port {agent.port}")
    cli.out(f"{admin} create cluster cl0 --agents ag03,ag04,ag05,ag06")
    cli.out(f"{admin} create allocation mine --cluster cl0 --size 2")
    cli.out(f"{admin} create allocation other --cluster cl0 --size 2")
    until(lambda: {agent["state"] for agent in cli.json(f"{admin} list agents")} == {"Up"})
    output = cli.out(f"{admin} create user alice --allocations mine")
    key = re.findall(r"Access key is '(.{11})'", output)[0]

    # The file of ``create user`` is sufficient: it contains the controller and the certificates too.
    without_settings = Cli(cli.home)
    alice = "vipu --config alice.vipu-cli.hcl"
    assert [item["id"] for item in without_settings.json(f"{alice} list allocations")] == ["mine"]
    assert (
        without_settings.out(f"{alice} create partition p1 --size 4 --allocation mine")
        == "create partition (p1): success.\n"
    )
    assert cli.files() == ["p1_ipuof.conf"]
    assert "'mine' has 4 free IPUs" in without_settings.failed(f"{alice} create partition p2 --size 8")
    chosen = without_settings(f"{alice} create partition p2 --size 4 --no-wait")
    assert chosen.stderr == "Note: partition 'p2' is in allocation 'mine'.\n"
    without_settings.out(f"{alice} remove partition p2")
    message = without_settings.failed(f"{alice} create partition p2 --size 4 --allocation other")
    assert "allocation 'other' does not exist, or you may not use it" in message
    message = without_settings.failed("vipu-admin --config alice.vipu-cli.hcl list agents")
    assert message.startswith("list (agents): failed: ") and key not in message
    assert without_settings.out(f"{alice} remove partition p1") == "remove partition (p1): success.\n"

    own = {"VIPU_CLI_CLIENT_CERT": "alice.crt", "VIPU_CLI_CLIENT_KEY": "alice.key"}
    environment = {"VIPU_CLI_API_USER_ID": "alice", "VIPU_CLI_API_ACCESS_KEY": key}
    assert "mine" in cli.out("vipu list allocations", **environment, **own)
    assert "mine" in cli.out(f"vipu --api-user-id alice --api-access-key {key} list allocations", **own)
    message = cli.failed("vipu list allocations", **environment)  # with the certificate of the administrator
    assert "the certificate is not one of this user, or was revoked" in message
    cli.out(f"{admin} remove user alice")
    message = without_settings.failed(f"{alice} list partitions")
    assert message.startswith("list (partitions): failed: ") and key not in message


def test_a_user_of_all_allocations(secure_cli: Cli, lab: Any) -> None:
    """Graphcore's guide: --allocations restricts a user. Without it, the user may use all, also later ones."""
    cli, admin = secure_cli, "vipu-admin --config admin.vipu-cli.hcl"
    for agent in lab.rack.agents[2:4]:
        cli.out(f"{admin} create agent {agent.id} --host {agent.host} --port {agent.port}")
    cli.out(f"{admin} create cluster cl0 --agents ag03,ag04")
    cli.out(f"{admin} create allocation early --cluster cl0 --size 1")
    made = cli(f"{admin} create user alice")
    assert made.stderr == "Note: user 'alice' may use all allocations. Option --allocations restricts a user.\n"
    made = cli.json(f"{admin} create user bob --allocations none")
    assert made["allocations"] == []
    cli.out(f"{admin} create user root2 --role admin")
    cli.out(f"{admin} create allocation late --cluster cl0 --size 1")
    plain = Cli(cli.home)  # the files of users are sufficient
    seen = {id: plain.json(f"vipu --config {id}.vipu-cli.hcl list allocations") for id in ("alice", "bob")}
    assert {id: [each["id"] for each in found] for id, found in seen.items()} == {"alice": ["early", "late"], "bob": []}
    assert "only administrators may do this" in plain.failed("vipu-admin --config alice.vipu-cli.hcl list agents")
    table = cells(cli.out(f"{admin} list users"))
    assert table[1:] == [["admin", "admin", ""], ["alice", "user", "*"], ["bob", "user", ""], ["root2", "admin", ""]]
    users = {each["id"]: each["allocations"] for each in cli.json(f"{admin} list users")}
    assert users == {"admin": [], "alice": ["*"], "bob": [], "root2": []}


def test_calls_without_valid_credentials(secure_cli: Cli, secure: Process) -> None:
    wrong = "n0tTheKey42"
    message = secure_cli.failed("vipu list partitions")
    assert message.startswith("list (partitions): failed: ")
    message = secure_cli.failed(f"vipu --api-user-id admin --api-access-key {wrong} list partitions")
    assert message.startswith("list (partitions): failed: ") and wrong not in message


def test_a_controller_with_other_metadata_keys(
    vipu_process: Callable[..., Process], secure: Process, secure_cli: Cli, tmp_path: Path
) -> None:
    secure.stop()
    keys = {"--metadata-user-id-key": "X-Who", "--metadata-access-key-key": "x-key"}
    flags = [word for pair in keys.items() for word in pair]
    server = vipu_process("--secure", "--certs", str(tmp_path / "vipu-certs"), *flags)
    cli = Cli(
        tmp_path, server.address, **{n: v for n, v in secure_cli.environment.items() if n.startswith("VIPU_CLI_C")}
    )
    admin = "vipu-admin --config admin.vipu-cli.hcl"
    assert "failed" in cli.failed(f"{admin} list users", "--api-port", server.address.rpartition(":")[2])
    cli.out(f"{admin} create user alice --allocations none", *flags)
    # The file of the new user contains these keys.
    assert Cli(tmp_path).json("vipu --config alice.vipu-cli.hcl list partitions") == []


def test_without_certificates(secure_cli: Cli, secure: Process, tmp_path: Path) -> None:
    plain = Cli(tmp_path, secure.address)
    where = f": failed: the V-IPU controller at {secure.address}"
    assert where in plain.failed("vipu list partitions")
    ca = tmp_path / "vipu-certs" / "client" / "ca.crt"
    assert where in plain.failed(f"vipu --ca-path {ca} list partitions")
