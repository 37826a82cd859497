# SPDX-License-Identifier: GPL-3.0-or-later
"""Announcements of agents that do not exist, or that belong to another host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.contract import admin
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.fleet.discovery import Discovery
from tests.integration.vipu_servers import InProcess

SPOOFED = 1_500


@pytest.fixture
def discovery(instant_server: InProcess) -> Iterator[Discovery]:
    """Yield the discovery of the controller; it receives no messages of the network."""
    made = Discovery(["lo"], "239.192.73.82", 0)
    instant_server.life.discovered = made.discovered
    yield made
    made.close()


def announce(discovery: Discovery, host: str) -> None:
    discovery.receive(contract.Presence(host=host, port=8080, boot_id="b").SerializeToString(), host, "lo")


def add(server: InProcess, *allowed: str) -> Any:
    return server.admin.AddDiscoveredAgents(admin.AddDiscoveredAgentsRequest(allowed=allowed), timeout=20)


def no_conflict(state: Any, found: Any) -> str:
    return ""


@pytest.mark.defence("openipu.vipu.fleet.auto_add.conflict", no_conflict)
def test_an_announcement_with_the_id_of_another_agent(instant_server: InProcess, discovery: Discovery) -> None:
    api = instant_server.admin
    api.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="127.6.6.6-8080", host="127.0.9.1")))
    announce(discovery, "127.6.6.6")
    announce(discovery, "127.0.9.2")
    reply = add(instant_server, "127.0.0.0/8")
    assert api.GetAgent(admin.GetAgentRequest(id="127.6.6.6-8080")).agent.spec.host == "127.0.9.1"
    assert reply.agent_ids == ["127.0.9.2-8080"], "it does not block the others"
    (rejected,) = reply.rejected
    assert (rejected.host, rejected.conflict) == ("127.6.6.6", "agent '127.6.6.6-8080' is registered at 127.0.9.1:8080")
    listed = api.ListDiscoveredAgents(admin.ListDiscoveredAgentsRequest()).agents
    assert [bool(each.conflict) for each in listed] == [False, True]


@pytest.mark.defence("openipu.vipu.fleet.auto_add.MAX_ADDED", 10**9)
@pytest.mark.defence("openipu.vipu.fleet.discovery.NEW_AT_ONCE", 10**9)
def test_thousands_of_invented_agents(instant_server: InProcess, discovery: Discovery) -> None:
    for number in range(SPOOFED):
        announce(discovery, f"127.7.{number // 250}.{number % 250}")
    try:
        add(instant_server, "127.0.0.0/8")
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert len(instant_server.admin.ListAgents(admin.ListAgentsRequest()).agents) <= 256


def all_found(found: Any, allowed: Any) -> list[Any]:
    return list(found)


@pytest.mark.defence("openipu.vipu.fleet.auto_add.select", all_found)
@pytest.mark.parametrize("allowed", [(), ("127.0.9.2-8080",), ("127.0.9.0/24",)])
def test_agents_that_nobody_allowed(instant_server: InProcess, discovery: Discovery, allowed: tuple[str, ...]) -> None:
    announce(discovery, "127.6.6.6")
    announce(discovery, "127.0.9.2")
    try:
        add(instant_server, *allowed)
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    registered = [each.spec.id for each in instant_server.admin.ListAgents(admin.ListAgentsRequest()).agents]
    assert registered == (["127.0.9.2-8080"] if allowed else [])
