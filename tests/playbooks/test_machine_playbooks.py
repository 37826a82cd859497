# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks that take IPU-Machines out of service and drain them, on a running POD."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu import objects
from openipu.shared.vipu.client import Client, Connection
from openipu.shared.vipu.contract import admin, virmgrpc
from tests.integration.bringup.conftest import deployed, own
from tests.integration.bringup.own_twin import OwnTwin, changed
from tests.playbooks.test_partition_playbooks import message, run, shown_stats, stats

__all__ = ["deployed", "own", "shown_stats"]


@pytest.fixture
def client(deployed: OwnTwin) -> Iterator[Client]:
    with Client(Connection(deployed.controller)) as made:
        yield made
        for agent in agents(made):
            request = admin.SetAgentServiceRequest(id=agent, service=admin.SERVICE_STATE_IN_SERVICE)
            made.call(made.admin.SetAgentService, request)


def agents(client: Client) -> dict[str, dict[str, Any]]:
    reply = client.call(client.admin.ListAgents, admin.ListAgentsRequest())
    return {item.spec.id: objects.agent(item) for item in reply.agents}


def service(client: Client, agent: str) -> tuple[bool, str | None]:
    found = agents(client)[agent]
    return found["in_service"], found["service_reason"]


def used(client: Client) -> str:
    """Return an agent whose IPUs are in a partition."""
    reply = client.call(client.user.ListIPUAttributes, virmgrpc.ListIPUAttributesRequest())
    return next(
        entry.agent
        for entry in reply.entries
        if any(ipu.attributes["partition id"] for ipu in entry.ipu_attributes.values())
    )


def test_the_service_of_a_machine(deployed: OwnTwin, client: Client) -> None:
    out = {"machine_name": "ag16", "machine_in_service": "false", "machine_reason": "fan 2 fails"}
    assert changed(run(deployed, "machine_service.yml", "--check", "--diff", **out)) == 1
    assert service(client, "ag16") == (True, None)
    done = run(deployed, "machine_service.yml", **out)
    assert changed(done) == 1
    assert stats(done)["machine_result"] == {"id": "ag16", "in_service": False, "service_reason": "fan 2 fails"}
    assert service(client, "ag16") == (False, "fan 2 fails")
    for options in ((), ("--check",)):
        assert changed(run(deployed, "machine_service.yml", *options, **{**out, "machine_reason": ""})) == 0
    back = {**out, "machine_in_service": "true"}
    assert changed(run(deployed, "machine_service.yml", **back)) == 1
    assert service(client, "ag16") == (True, None)
    failed = message(run(deployed, "machine_service.yml", machine_name="x", machine_in_service="false", check=False))
    assert "Cannot change the service of IPU-Machine 'x': the controller has no agent 'x'. Register it first." in failed
    assert "machine_name and machine_in_service are required" in message(
        run(deployed, "machine_service.yml", machine_name="ag16", check=False)
    )


def test_a_machine_is_drained(deployed: OwnTwin, client: Client, tmp_path: Path) -> None:
    agent = used(client)
    given = {"machine_name": agent, "machine_reason": "fan 2 fails", "machine_notify_folder": str(tmp_path / "notices")}
    for options, more in ((("--check",), {}), ((), {"machine_dry_run": "true"})):
        done = run(deployed, "machine_drain.yml", *options, **given, **more)
        assert "PLAY RECAP" in done.stdout and "partitions stay on it" in done.stdout
        assert service(client, agent) == (True, None)
        assert not (tmp_path / "notices").exists()
    done = run(deployed, "machine_drain.yml", **given)
    assert service(client, agent) == (False, "fan 2 fails")
    result = stats(done)["machine_result"]
    assert (result["id"], result["moved"]) == (agent, [])
    text = (tmp_path / "notices" / f"drain-{agent}.txt").read_text()
    for item in result["remaining"]:
        assert f"Partition {item['id']} of allocation {item['allocation']} stays: it is not relocatable.\n" in text
    for options in ((), ("--check",)):
        assert changed(run(deployed, "machine_drain.yml", *options, **given)) == 0


def test_a_limit_keeps_machines_in_service(deployed: OwnTwin, client: Client) -> None:
    run(deployed, "machine_drain.yml", machine_name="ag15", machine_limit=1)
    assert service(client, "ag15") == (False, None)
    done = run(deployed, "machine_drain.yml", machine_name="ag16", machine_limit=1)
    assert "2 agents would be Down or out of service, and the limit is 1" in " ".join(done.stdout.split())
    assert service(client, "ag16") == (True, None)
    run(deployed, "machine_drain.yml", machine_name="ag16", machine_limit=2)
    assert service(client, "ag16") == (False, None)
