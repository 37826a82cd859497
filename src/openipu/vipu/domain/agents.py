# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for creating and changing agents.

``rules`` describes the interface of ``make_agent`` and ``change_agent``.
"""

from __future__ import annotations

from dataclasses import replace

from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleViolation, invalid, listing, quoted
from openipu.vipu.domain.model import Agent
from openipu.vipu.domain.specs import AgentSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import check_host

MAX_REASON = 200  # characters


def make_agent(state: State, spec: AgentSpec | Agent, context: Context) -> Agent:
    """Return an agent; its endpoint must be valid and unused."""
    check_host(spec.host)
    if not 1 <= spec.port <= 65535:
        raise invalid(f"the port must be 1 to 65535, not {spec.port}")
    other = state.endpoints.get((spec.host.lower(), spec.port), spec.id)
    if other != spec.id:
        raise RuleViolation(Code.ALREADY_EXISTS, f"agent {quoted(other)} already uses {spec.host}:{spec.port}")
    return with_service(Agent(spec.id, spec.host, spec.port), spec.out_of_service, spec.service_reason)


def change_agent(state: State, current: Agent, spec: AgentSpec | Agent, context: Context) -> Agent:
    """Return the changed agent.

    The endpoint may change, because the machine keeps its position in its cluster. But an agent that is Up and holds
    partitions keeps it: another machine would receive them. A machine may go out of service at any time, because its
    partitions stay.
    """
    changed = with_service(current, spec.out_of_service, spec.service_reason)
    if (spec.host, spec.port) == (current.host, current.port):
        return changed
    if (spec.host.lower(), spec.port) != (current.host.lower(), current.port):
        _check_endpoint_change(state, current, context)
    return make_agent(state, replace(changed, host=spec.host, port=spec.port), context)


def _check_endpoint_change(state: State, current: Agent, context: Context) -> None:
    held = sorted(set(dict(state.holders.get(current.id, ())).values()))
    if held and context.is_up(current.id):
        noun = "partition" if len(held) == 1 else "partitions"
        host = f"[{current.host}]" if ":" in current.host else current.host
        raise RuleViolation(
            Code.FAILED_PRECONDITION,
            f"it is up at {host}:{current.port} and holds {noun} {listing(held)}. Remove the {noun}, or stop "
            "virm-agent on this machine. Then change the endpoint",
        )


def with_service(current: Agent, out_of_service: bool | None, reason: str) -> Agent:
    """Return the agent in this state of service; the identical record when nothing changes.

    None keeps the state. An empty reason keeps that of an agent that stays out of service.
    """
    out = current.out_of_service if out_of_service is None else out_of_service
    if reason and not out:
        raise invalid("a reason is for an agent that is out of service. Omit the reason")
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise invalid(f"the reason must be one line of at most {MAX_REASON} printable characters")
    kept = current.service_reason if out else ""
    if (out, reason or kept) == (current.out_of_service, current.service_reason):
        return current
    return replace(current, out_of_service=out, service_reason=reason or kept)
