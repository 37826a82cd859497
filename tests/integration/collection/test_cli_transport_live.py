# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the command line transport with a real controller, compared with gRPC."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Failure, Step
from ansible_collections.openipu.pod.plugins.module_utils.vipu import options, resources
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import VipuError
from ansible_collections.openipu.pod.plugins.module_utils.vipu.transport.interface import Transport

from openipu.vipu.fleet.status import DiscoveredAgent
from openipu.vipu.tls import issue, load
from tests.integration.vipu_servers import InProcess, InstantLife, Process, pod, run

BIN = Path(sys.executable).parent
KINDS = [family.kind for family in resources.FAMILIES]
# Fields that the commands do not print, or print differently.
UNREPORTED = {
    "agent": {"reason", "versions", "service_reason"},
    "cluster": set[str](),
    "allocation": {"cluster", "partitions", "free_ipus", "free_machines"},
    "partition": {"num_replicas", "num_segments", "gw_routing", "sync_type", "reconfigurable", "ipus"},
    "user": set[str](),
}


@pytest.fixture
def connect() -> Iterator[Callable[..., Transport]]:
    """Return transports to a server, by default over the real commands; closed after the test."""
    with contextlib.ExitStack() as stack:

        def make(server: InProcess | Process, transport: str = "cli", **more: Any) -> Transport:
            host, port = server.address.rsplit(":", 1)
            params = {
                **{name: option.get("default") for name, option in options.CONNECTION_OPTIONS.items()},
                "api_host": host,
                "api_port": int(port),
                "transport": transport,
                "vipu_path": str(BIN / "vipu"),
                "vipu_admin_path": str(BIN / "vipu-admin"),
                **more,
            }
            made = options.open_transport(params)
            stack.callback(made.close)
            return made

        yield make


def step(kind: str, id: str, action: Action = Action.CREATE, **desired: Any) -> Step:
    """A step of a plan."""
    family = next(family for family in resources.FAMILIES if family.kind == kind)
    before = None if action is Action.CREATE else {"id": id}
    return Step(family, id, action, before, None if action is Action.DELETE else {"id": id, **desired})


POD = [
    *(step("agent", f"ag{n:02}", host=f"127.0.9.{n}") for n in range(1, 5)),
    step("cluster", "cl0", agents=[f"ag{n:02}" for n in range(1, 5)], num_ilds=2, topology="torus"),
    step("allocation", "team-a", cluster="cl0", size=4),
    step("partition", "vision", allocation="team-a", size=8, num_gcds=2, reconfigurable=True),
    step("partition", "notebook", allocation="team-a", size=1),
    step("user", "alice", allocations=["team-a"]),
    step("user", "bob", allocations=["*"]),
    step("user", "carol", allocations=[]),
]


def test_both_transports_read_the_same(
    vipu_server: Callable[..., InProcess], connect: Callable[..., Transport]
) -> None:
    server = vipu_server(life=InstantLife)
    cli, grpc = connect(server), connect(server, "grpc")
    assert cli.read_all(KINDS) == {kind: [] for kind in KINDS}
    assert cli.write(POD, force=False) == []
    for kind, items in cli.read_all(KINDS).items():
        expected = grpc.read(kind)
        assert items == [
            {name: value for name, value in item.items() if name not in UNREPORTED[kind]} for item in expected
        ], kind
        assert len(items) == sum(step.family.kind == kind for step in POD)
    vision = next(item for item in grpc.read("partition") if item["id"] == "vision")
    del vision["gw_routing"]  # there is none in one IPU-Link domain
    options = grpc.partition_details(["vision", "nonesuch"])["vision"]
    assert options == {"disable_auto_reset": False, "relocatable": False}
    assert cli.partition_details(["vision", "nonesuch"]) == {"vision": {**vision, **options}}
    assert cli.version() == grpc.version()
    assert cli.ipuof_config("vision") == grpc.ipuof_config("vision")
    assert len(cli.ipuof_config("vision")) == 2
    assert cli.ipu_attributes() == grpc.ipu_attributes()
    assert cli.ipu_attributes()["ag04"][3]["clock"] == "1330MHz"
    status = grpc.partition_status("vision")
    assert cli.partition_status("vision")["state"] == status["state"] == "ACTIVE"
    key = cli.access_key("alice")
    assert key is not None and len(key) == 11
    with pytest.raises(VipuError, match="Use transport grpc"):
        cli.fits("team-a", [1])
    deletions = [step(each.family.kind, each.key, Action.DELETE) for each in POD]
    assert cli.write(deletions, force=False) == []
    assert cli.read_all(KINDS) == {kind: [] for kind in KINDS}


def test_both_transports_discover_the_same_agents(
    vipu_server: Callable[..., InProcess], connect: Callable[..., Transport]
) -> None:
    server = vipu_server(life=InstantLife)
    cli, grpc = connect(server), connect(server, "grpc")
    assert cli.discovered() == grpc.discovered() == []
    pod(server, machines=1, allocations={})
    server.life.found = [
        DiscoveredAgent("127.0.9.1", 8080, "lo", 0.00002),
        DiscoveredAgent("127.0.9.2", 8081, "lo", 2.154768458),
    ]
    assert cli.discovered() == grpc.discovered()
    assert [agent["agent"] for agent in cli.discovered()] == ["ag01", None]


def test_a_batch_stops_at_the_first_rejected_step(
    vipu_server: Callable[..., InProcess], connect: Callable[..., Transport]
) -> None:
    server = vipu_server(life=InstantLife)
    cli = connect(server)
    errors = cli.write(
        [
            step("agent", "ag01", host="127.0.9.1"),
            step("cluster", "cl0", agents=["ag01", "ag02"]),
            step("allocation", "a1", cluster="cl0", size=1),
        ],
        force=False,
    )
    assert [(error.kind, error.key, error.failure) for error in errors] == [
        ("cluster", "cl0", Failure.REJECTED),
        ("allocation", "a1", Failure.NOT_TRIED),
    ]
    assert errors[0].message.startswith("Cannot create cluster 'cl0': ")
    assert "ag02" in errors[0].message
    assert [agent["id"] for agent in cli.read("agent")] == ["ag01"]


def test_a_timeout_of_the_creation_command_is_no_error(
    vipu_server: Callable[..., InProcess], connect: Callable[..., Transport]
) -> None:
    server = vipu_server(life=InstantLife)
    pod(server, machines=1)
    server.life.configures = False
    cli = connect(server, timeout=3.0)
    assert cli.write([step("partition", "p1", allocation="a1", size=4)], force=False) == []
    assert cli.partition_status("p1")["state"] == "PENDING"


def test_no_controller(vipu_server: Callable[..., InProcess], connect: Callable[..., Transport]) -> None:
    server = vipu_server(life=InstantLife)
    cli = connect(server)
    server.stop()
    message = r"^Cannot list partitions: the V-IPU controller at 127\.0\.0\.1:\d+ does not respond"
    with pytest.raises(VipuError, match=message) as caught:
        cli.read("partition")
    assert caught.value.message.count("\n") == 0


def test_only_the_public_api(vipu_server: Callable[..., InProcess], connect: Callable[..., Transport]) -> None:
    server = vipu_server(life=InstantLife, public_only=True)
    cli = connect(server)
    assert cli.read("partition") == []
    message = r"^Cannot list agents: the V-IPU controller at .* offers only the public user API\."
    with pytest.raises(VipuError, match=message):
        cli.read("agent")


def test_tenants_of_a_secure_controller(
    vipu_process: Callable[..., Process], connect: Callable[..., Transport], tmp_path: Path
) -> None:
    certs = tmp_path / "vipu-certs"
    issue.create(certs, ["127.0.0.1"])
    secure = ("--secure", "--certs", str(certs), "--client-certificates", "shared")
    made = run("--init", *secure, "--database", str(tmp_path / "vipu-server.db"))
    assert made.returncode == 0, made.stderr
    server = vipu_process(*secure)
    client = certs / "client"
    tls_options = {
        "ca_path": str(client / load.CA),
        "client_cert": str(client / "client.crt"),
        "client_key": str(client / "client.key"),
    }
    key = re.search('api-access-key="(.*)"', (tmp_path / "admin.vipu-cli.hcl").read_text())
    assert key
    admin = connect(server, **tls_options, api_user_id="admin", api_access_key=key[1])
    created = [
        step("agent", "ag01", host="127.0.9.1"),
        step("cluster", "cl0", agents=["ag01"]),
        step("user", "alice"),
    ]
    assert admin.write(created, force=False) == []
    alice = connect(server, **tls_options, api_user_id="alice", api_access_key=admin.access_key("alice"))
    assert alice.read("allocation") == []
    with pytest.raises(VipuError, match="Cannot call ListAgents: only administrators may do this"):
        alice.read("agent")
    wrong = connect(server, **tls_options, api_user_id="alice", api_access_key="AbCdEfGhIjK")
    with pytest.raises(VipuError, match="user id or its access key is wrong") as caught:
        wrong.read("partition")
    assert "AbCdEfGhIjK" not in caught.value.message + caught.value.details
    with pytest.raises(VipuError, match="Give a user id and its access key"):
        connect(server, **tls_options).read("partition")
    with pytest.raises(VipuError, match="client-cert"):
        connect(server).read("partition")
