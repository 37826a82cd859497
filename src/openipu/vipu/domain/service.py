# SPDX-License-Identifier: GPL-3.0-or-later
"""Service of IPU-Machines: nothing new is placed on one that is out of service.

A drain takes a machine out of service and moves its partitions where that is allowed and possible. A move resets the
partition, which ends its job. The controller does not know whether a job runs. So only partitions that have failed
move without ``force``.
"""

from __future__ import annotations

from dataclasses import dataclass

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.agents import with_service
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import RuleError, RuleViolation, missing, quoted
from openipu.vipu.domain.model import Agent, Change, Kind, Operation, Partition, Put
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import check_not_tested

_IN_PROGRESS = {
    Operation.CREATING: "it is being created. Drain the agent again when it is ACTIVE",
    Operation.RESETTING: "it is being reset. Drain the agent again when it is ACTIVE",
    Operation.REMOVING: "it is being removed",
}


@dataclass(frozen=True, slots=True)
class DrainedPartition:
    """Partition on a drained machine. ``reason``: why it stays, a clause; empty for one that moves."""

    id: str
    allocation: str
    users: tuple[str, ...]  # of its allocation
    reason: str = ""
    agents: tuple[str, ...] = ()  # that it moves to


def set_service(state: State, id: str, out_of_service: bool | None, reason: str) -> list[Change]:
    """Return the change, if any, that sets the state of service of an agent; None keeps it. Raises RuleError."""
    try:
        agent = _find(state, id)
        changed = with_service(agent, out_of_service, reason)
    except RuleViolation as violation:
        raise _error("change", id, violation) from None
    return [] if changed is agent else [Put(changed)]


def drain(
    state: State, id: str, reason: str, context: Context, *, force: bool
) -> tuple[list[Change], list[DrainedPartition]]:
    """Return the changes that drain an agent, and its partitions, sorted by id. Raises RuleError.

    ``force``: also move partitions that may have jobs. The state is modified meanwhile and restored before this
    returns.
    """
    try:
        agent = _find(state, id)
        check_not_tested(state.cluster_of.get(id, ""), context)
        out = with_service(agent, True, reason)
    except RuleViolation as violation:
        raise _error("drain", id, violation) from None
    changes: list[Change] = [] if out is agent else [Put(out)]
    undo = [state.apply(changes)]
    drained = []
    try:
        for partition in sorted(set(state.holders.get(id, {}).values())):
            change, item = _drained(state, state.partitions[partition], context, force=force)
            undo.append(state.apply(change))
            changes += change
            drained.append(item)
    finally:
        for each in reversed(undo):
            state.apply(each)
    return changes, drained


def _drained(
    state: State, record: Partition, context: Context, *, force: bool
) -> tuple[list[Change], DrainedPartition]:
    """Return the change that moves a partition, if any, and its entry in the report."""
    item = (record.id, record.allocation, _users(state, record.allocation))
    if reason := _obstacle(record, force=force):
        return [], DrainedPartition(*item, reason)
    ipus = partition_state.find_relocation(state, record, context.unavailable, context.quarantined)
    if ipus is None:
        return [], DrainedPartition(*item, "its allocation has no other free place for it")
    moved = partition_state.reset(record, ipus)
    agents = tuple(dict.fromkeys(agent for agent, _ in state.machines_of(moved)))
    return [Put(moved)], DrainedPartition(*item, agents=agents)


def _users(state: State, allocation: str) -> tuple[str, ...]:
    """Return the users of an allocation, also those of all allocations, sorted by id."""
    of_all = {user.id for user in state.users.values() if user.all_allocations}
    return tuple(sorted(of_all.union(state.users_of.get(allocation, ()))))


def _obstacle(record: Partition, *, force: bool) -> str:
    """Return why a partition must not move, empty if it may."""
    if record.operation in _IN_PROGRESS:
        return _IN_PROGRESS[record.operation]
    if not record.relocatable:
        return "it is not relocatable"
    if record.disable_auto_reset:
        return "its automatic resets are disabled"
    if record.operation is not Operation.FAILED and not force:
        return "a job may use it. Its users can move it with a reset, or use force"
    return ""


def _find(state: State, id: str) -> Agent:
    if id not in state.agents:
        raise missing(Kind.AGENT, id)
    return state.agents[id]


def _error(verb: str, id: str, violation: RuleViolation) -> RuleError:
    return RuleError(violation.code, f"Cannot {verb} agent {quoted(id)}: {violation.reason}.", violation.needs)
