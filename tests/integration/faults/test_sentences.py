# SPDX-License-Identifier: GPL-3.0-or-later
"""What users are told when something is down, wrong or out of date: one sentence with place and remedy."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agents_support import RackProcess
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import (
    Client,
    Connection,
    VipuError,
    wait_partition,
)
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc
from vipu_servers import Process
from waiting import until

from openipu.vipu import tls

Make = Callable[..., Process]


def place(server: Process) -> Connection:
    """How to reach a controller."""
    host, _, port = server.address.rpartition(":")
    return Connection(host, int(port), timeout=10)


def told(connection: Connection, method: str = "ListPartitions", request: Any = None, action: str = "") -> str:
    """The sentence with which a call fails."""
    with Client(connection) as client, pytest.raises(VipuError) as caught:
        stub = client.user if hasattr(client.user, method) else client.admin
        client.call(getattr(stub, method), request or virmgrpc.ListPartitionsRequest(), action or "list partitions")
    sentence = caught.value.sentence
    assert sentence.endswith(".") and sentence.isprintable(), sentence
    assert ". " not in sentence.replace("127.0.0.1", ""), f"more than one sentence: {sentence}"
    return sentence


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[RackProcess]:
    made = RackProcess(tmp_path, 2)
    yield made
    made.close()


def test_controller_down(vipu_process: Make) -> None:
    server = vipu_process()
    server.kill()
    connection = place(server)
    assert told(connection) == (
        f"The V-IPU controller at {connection.address} does not answer (connection refused): "
        "check that vipu-server runs there and that host and port are right."
    )


def test_port_of_an_agent(rack: RackProcess) -> None:
    agent = rack.agents[0]
    sentence = told(Connection(agent.host, agent.port, timeout=10))
    assert f"{agent.host}:{agent.port}" in sentence
    assert "check host and port" in sentence


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
    with Client(place(server)) as client:
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
    sentence = told(place(server), "RemovePartition", remove, "remove partition 'p1'")
    assert sentence.startswith("Cannot remove partition 'p1': ")
    assert first.id in sentence and "force" in sentence
    small = virmgrpc.PartitionRequirements(id="p2", size=4, allocation_id="a1")
    create = virmgrpc.CreatePartitionRequest(requirements=small)
    assert "Cannot create partition 'p2': " in told(place(server), "CreatePartition", create, "create partition 'p2'")


@pytest.fixture
def secure(vipu_process: Make, tmp_path: Path) -> Connection:
    """A secure controller, and how to reach it with everything but a right key."""
    certs = tmp_path / "certs"
    tls.create(certs, ["127.0.0.1"])
    return replace(
        place(vipu_process("--secure", "--certs", str(certs))),
        ca_path=str(certs / "client" / tls.CA),
        client_cert=str(certs / "client" / "client.crt"),
        client_key=str(certs / "client" / "client.key"),
    )


def test_wrong_key(secure: Connection) -> None:
    sentence = told(replace(secure, user_id="alice", access_key="wrong"))
    assert "The user id or its access key is wrong" in sentence
    assert "give a user id and its access key" in told(secure)


def test_expired_certificate(secure: Connection, tmp_path: Path) -> None:
    old = tmp_path / "old"
    tls.create(old, ["127.0.0.1"], datetime.timedelta(days=-1))
    client = old / "client"
    sentence = told(replace(secure, client_cert=str(client / "client.crt"), client_key=str(client / "client.key")))
    assert secure.address in sentence
    assert "expired" in sentence and "client_cert" in sentence


def test_expired_certificate_of_the_controller(vipu_process: Make, tmp_path: Path) -> None:
    tls.create(tmp_path / "old", ["127.0.0.1"], datetime.timedelta(days=-1))
    with pytest.raises(RuntimeError) as caught:
        vipu_process("--secure", "--certs", str(tmp_path / "old"))
    assert "server.crt' is valid from" in str(caught.value)
    assert "vipu-server --tls-init" in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_secure_and_not(secure: Connection) -> None:
    assert "give its CA and a client certificate" in told(Connection(secure.host, secure.port, timeout=10))


def test_not_secure_and_asked_to_be(vipu_process: Make, tmp_path: Path) -> None:
    tls.create(tmp_path / "certs", ["127.0.0.1"])
    connection = replace(place(vipu_process()), ca_path=str(tmp_path / "certs" / "client" / tls.CA))
    assert "does not speak TLS" in told(connection)
