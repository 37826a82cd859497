# SPDX-License-Identifier: GPL-3.0-or-later
"""Error messages for users: one cause with the connection_to, and a remedy."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.client import (
    Client,
    Connection,
    VipuError,
    wait_partition,
)
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.tls import issue, load
from tests.integration.agents.agents_support import RackProcess
from tests.integration.vipu_servers import Process
from tests.waiting import until

Make = Callable[..., Process]


def connection_to(server: Process) -> Connection:
    """Return the connection to a controller."""
    host, _, port = server.address.rpartition(":")
    return Connection(host, int(port), timeout=10)


def error_of(connection: Connection, method: str = "ListPartitions", request: Any = None, action: str = "") -> str:
    """Return the message of a failed call."""
    with Client(connection) as client, pytest.raises(VipuError) as caught:
        stub = client.user if hasattr(client.user, method) else client.admin
        client.call(getattr(stub, method), request or virmgrpc.ListPartitionsRequest(), action or "list partitions")
    message = caught.value.message
    assert message.endswith(".") and message.isprintable(), message
    assert message.count(". ") <= 1, f"more than a cause and a remedy: {message}"
    return message


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[RackProcess]:
    made = RackProcess(tmp_path, 2)
    yield made
    made.close()


def test_controller_down(vipu_process: Make) -> None:
    server = vipu_process()
    server.kill()
    connection = connection_to(server)
    assert error_of(connection) == (
        f"Cannot list partitions: the V-IPU controller at {connection.address} does not respond (connection refused). "
        "Check host and port, and that vipu-server runs there."
    )


def test_port_of_an_agent(rack: RackProcess) -> None:
    agent = rack.agents[0]
    message = error_of(Connection(agent.host, agent.port, timeout=10))
    assert f"{agent.host}:{agent.port}" in message
    assert "Check host and port" in message


def test_agent_down(vipu_process: Make, rack: RackProcess) -> None:
    server = vipu_process("--partition-timeout", "5")
    names = [agent.id for agent in rack.agents]
    first = rack.agents[0]
    reply = server.admin.Apply(
        admin.ApplyRequest(
            agents=[admin.AgentSpec(id=agent.id, host=agent.host, port=agent.port) for agent in rack.agents],
            clusters=[admin.ClusterSpec(id="cl0", agent_ids=names)],
            allocations=[admin.AllocationSpec(id="a1", cluster_id="cl0", agent_ids=names)],
            partitions=[
                admin.PartitionSpec(
                    requirements=virmgrpc.PartitionRequirements(id="p1", size=8, allocation_id="a1"),
                    disable_auto_reset=True,
                )
            ],
        )
    )
    assert reply.applied, reply.results
    with Client(connection_to(server)) as client:
        assert wait_partition(client, "p1", 10)[1].ready_state == virmgrpc.PS_ACTIVE
        rack.stop_machines(first.id)
        done, status = wait_partition(client, "p1", 10, until=lambda now: now.ready_state == virmgrpc.PS_ERROR)
        assert done
        (error,) = status.errors
    assert first.id in error and f"{first.host}:{first.port}" in error, error
    get = admin.GetAgentRequest(id=first.id)
    until(lambda: server.admin.GetAgent(get).agent.state == admin.AGENT_STATE_DOWN)
    assert server.admin.GetAgent(get).agent.reason
    remove = virmgrpc.RemovePartitionRequest(partition_id="p1")
    message = error_of(connection_to(server), "RemovePartition", remove, "remove partition 'p1'")
    assert message.startswith("Cannot remove partition 'p1': ")
    assert first.id in message and "force" in message
    small = virmgrpc.PartitionRequirements(id="p2", size=4, allocation_id="a1")
    create = virmgrpc.CreatePartitionRequest(requirements=small)
    message = error_of(connection_to(server), "CreatePartition", create, "create partition 'p2'")
    assert "Cannot create partition 'p2': " in message


@pytest.fixture
def secure(vipu_process: Make, tmp_path: Path) -> Connection:
    """Start a secure controller, and return a connection without user and key."""
    certs = tmp_path / "certs"
    issue.create(certs, ["127.0.0.1"])
    return replace(
        connection_to(vipu_process("--secure", "--certs", str(certs))),
        ca_path=str(certs / "client" / load.CA),
        client_cert=str(certs / "client" / "client.crt"),
        client_key=str(certs / "client" / "client.key"),
    )


def test_wrong_key(secure: Connection) -> None:
    message = error_of(replace(secure, user_id="alice", access_key="wrong"))
    assert "the user id or its access key is wrong" in message
    assert "Give a user id and its access key" in error_of(secure)


def test_expired_certificate(secure: Connection, tmp_path: Path) -> None:
    old = tmp_path / "old"
    issue.create(old, ["127.0.0.1"], datetime.timedelta(days=-1))
    client = old / "client"
    message = error_of(replace(secure, client_cert=str(client / "client.crt"), client_key=str(client / "client.key")))
    assert secure.address in message
    assert "expired" in message and "client_cert" in message


def test_expired_certificate_of_the_controller(vipu_process: Make, tmp_path: Path) -> None:
    issue.create(tmp_path / "old", ["127.0.0.1"], datetime.timedelta(days=-1))
    with pytest.raises(RuntimeError) as caught:
        vipu_process("--secure", "--certs", str(tmp_path / "old"))
    assert "server.crt': it is valid only from" in str(caught.value)
    assert "vipu-server --tls-init" in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_secure_controller_without_certificate(secure: Connection) -> None:
    assert "set ca_path, client_cert and client_key" in error_of(Connection(secure.host, secure.port, timeout=10))


def test_tls_to_a_controller_without_tls(vipu_process: Make, tmp_path: Path) -> None:
    issue.create(tmp_path / "certs", ["127.0.0.1"])
    connection = replace(connection_to(vipu_process()), ca_path=str(tmp_path / "certs" / "client" / load.CA))
    assert "does not use TLS" in error_of(connection)
