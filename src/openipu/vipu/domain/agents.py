# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for creating and changing agents.

``rules`` describes the interface of ``make_agent`` and ``change_agent``.
"""

from __future__ import annotations

from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, invalid, quoted
from openipu.vipu.domain.model import Agent
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import check_host


def make_agent(state: State, spec: Agent, context: Context) -> Agent:
    """Return an agent; its endpoint must be valid and unused."""
    check_host(spec.host)
    if not 1 <= spec.port <= 65535:
        raise invalid(f"the port must be 1 to 65535, not {spec.port}")
    other = state.endpoints.get((spec.host.lower(), spec.port), spec.id)
    if other != spec.id:
        raise RuleViolation(Code.ALREADY_EXISTS, f"agent {quoted(other)} already uses {spec.host}:{spec.port}")
    return spec


def change_agent(state: State, current: Agent, spec: Agent, context: Context) -> Agent:
    """Return the changed agent.

    The endpoint may change at any time, because the machine keeps its position in its cluster.
    """
    return current if spec == current else make_agent(state, spec, context)
