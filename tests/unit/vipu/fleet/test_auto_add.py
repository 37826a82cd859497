# SPDX-License-Identifier: GPL-3.0-or-later
"""Selection of discovered agents for registration."""

from __future__ import annotations

import pytest

from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.domain.model import Agent, Put
from openipu.vipu.domain.state import State
from openipu.vipu.fleet import auto_add
from openipu.vipu.fleet.status import DiscoveredAgent

FOUND = [DiscoveredAgent(f"10.2.{rack}.{n}", 8080, "eth0", 1.0) for rack in (1, 2) for n in (1, 2)]


@pytest.mark.parametrize(
    ("allowed", "selected"),
    [
        (["10.2.1.1-8080"], [0]),
        (["10.2.1.0/24"], [0, 1]),
        (["10.2.2.2-8080", "10.2.1.0/31", "10.2.2.2-8080"], [3, 0]),
        (["10.9.0.0/16"], []),
    ],
)
def test_allowed_agents(allowed: list[str], selected: list[int]) -> None:
    assert auto_add.select(FOUND, allowed) == [FOUND[index] for index in selected]


@pytest.mark.parametrize(
    ("allowed", "code", "reason"),
    [
        ([], Code.INVALID_ARGUMENT, "no agent is allowed"),
        (["10.2.9.9-8080"], Code.NOT_FOUND, "no agent announces itself as '10.2.9.9-8080'"),
        (["*"], Code.NOT_FOUND, "no agent announces itself"),
        (["10.2.1.1/24"], Code.INVALID_ARGUMENT, "is no IPv4 network"),
        (["fd00::/8"], Code.INVALID_ARGUMENT, "is no IPv4 network"),
    ],
)
def test_rejected_lists(allowed: list[str], code: Code, reason: str) -> None:
    with pytest.raises(RuleError, match=reason) as caught:
        auto_add.select(FOUND, allowed)
    assert caught.value.code is code
    assert caught.value.message.startswith("Cannot register discovered agents: ")


def test_conflicts() -> None:
    state = State()
    state.apply([Put(Agent("10.2.1.1-8080", "10.2.1.9")), Put(Agent("10.2.1.2-8080", "10.2.1.2"))])
    assert auto_add.conflict(state, FOUND[0]) == "agent '10.2.1.1-8080' is registered at 10.2.1.9:8080"
    assert auto_add.conflict(state, FOUND[1]) == auto_add.conflict(state, FOUND[2]) == ""
