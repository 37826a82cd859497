# SPDX-License-Identifier: GPL-3.0-or-later
"""Registration of discovered agents. No I/O.

Announcements are not authenticated. So only agents that an administrator allowed are registered, and an announcement
never changes an agent that exists.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.status import DiscoveredAgent

MAX_ADDED = 256  # agents of one call; an IPU-POD1024 has 256 IPU-Machines


def select(found: Iterable[DiscoveredAgent], allowed: Sequence[str]) -> list[DiscoveredAgent]:
    """Return the discovered agents that are allowed by automatic id or IPv4 network. Raises RuleError."""
    if not allowed:
        raise _error(
            Code.INVALID_ARGUMENT,
            "no agent is allowed. Name automatic ids, or IPv4 networks such as 10.2.0.0/16, because announcements are "
            "not authenticated",
        )
    by_id = {agent.auto_id: agent for agent in found}
    selected: dict[str, DiscoveredAgent] = {}
    for item in allowed:
        if item in by_id:
            selected[item] = by_id[item]
        elif "/" in item:
            network = _network(item)
            selected |= {id: each for id, each in by_id.items() if ipaddress.IPv4Address(each.host) in network}
        else:
            raise _error(Code.NOT_FOUND, f"no agent announces itself as {quoted(item)}. Check its network")
    return list(selected.values())


def check_number(agents: Sequence[DiscoveredAgent]) -> None:
    """Raise RuleError for too many agents, which an attacker may have invented."""
    if len(agents) > MAX_ADDED:
        raise _error(
            Code.FAILED_PRECONDITION,
            f"{len(agents)} of the allowed agents are not registered, more than {MAX_ADDED}. Allow fewer",
        )


def conflict(state: State, found: DiscoveredAgent) -> str:
    """Return a clause when an agent with the automatic id of another endpoint exists, else an empty string."""
    agent = state.agents.get(found.auto_id)
    if agent is None or (agent.host.lower(), agent.port) == (found.host, found.port):
        return ""
    return f"agent {quoted(agent.id)} is registered at {agent.host}:{agent.port}"


def _network(text: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        raise _error(Code.INVALID_ARGUMENT, f"{quoted(text)} is no IPv4 network, such as 10.2.0.0/16") from None


def _error(code: Code, reason: str) -> RuleError:
    return RuleError(code, f"Cannot register discovered agents: {reason}.")
