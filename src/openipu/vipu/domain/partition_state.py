# SPDX-License-Identifier: GPL-3.0-or-later
"""State transitions of a partition as pure functions, and the search for other IPUs. No I/O.

A transition returns the record that replaces the current one. Requested transitions raise RuleViolation
when the current state does not allow them. Times are seconds since 1970.

Automatic resets are counted in ``retries``, up to ``max_retries``; after that the partition remains in
ERROR. The status reports the count even after a success. The count restarts with a requested reset,
and when a partition fails or becomes unreachable RETRY_EXPIRY seconds or more after its last automatic reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from openipu.vipu.domain import placement
from openipu.vipu.domain.capacity import occupancy_of
from openipu.vipu.domain.errors import Code, RuleViolation
from openipu.vipu.domain.model import Change, Device, Operation, Partition, PlacedIpu, Put, ReadyState
from openipu.vipu.domain.state import State

RETRY_EXPIRY = 600.0  # seconds
FIRST_DELAY = 0.5  # seconds from the first automatic reset to the second; doubled for every further one
MAX_DELAY = 30.0
MAX_ERRORS = 8  # messages stored for one failure


def configured(current: Partition, devices: Sequence[Device]) -> Partition:
    """Return the record after all agents have configured their IPUs."""
    return replace(current, ready=ReadyState.ACTIVE, operation=Operation.IDLE, errors=(), devices=tuple(devices))


def failed(current: Partition, errors: Iterable[str]) -> Partition:
    """Return the record after its operation failed."""
    return replace(current, ready=ReadyState.ERROR, operation=Operation.FAILED, errors=tuple(errors)[:MAX_ERRORS])


def removal_blocked(current: Partition, errors: Iterable[str]) -> Partition:
    """Return the record while an unreachable machine delays its removal; ``errors`` are the causes."""
    reported = tuple(errors)[:MAX_ERRORS]
    if current.operation is not Operation.REMOVING or current.errors == reported:
        return current
    return replace(current, ready=ReadyState.ERROR, errors=reported)


def unreachable(current: Partition, error: str, now: float) -> Partition:
    """Return the record while a machine of it does not respond. Its share may still run, so nothing is reset.

    A partition that has failed or is unreachable already keeps its earlier errors. A partition with an operation
    in progress is returned unchanged: that operation succeeds or fails by itself.
    """
    if current.operation in (Operation.FAILED, Operation.UNREACHABLE):
        errors = current.errors if error in current.errors else (*current.errors, error)[:MAX_ERRORS]
        return current if errors == current.errors else replace(current, errors=errors)
    if current.operation is not Operation.IDLE:
        return current
    record = replace(current, ready=ReadyState.ERROR, operation=Operation.UNREACHABLE, errors=(error,))
    return _with_expired_retries(record, now)


def regained(current: Partition) -> Partition:
    """Return the record after all machines of an unreachable partition respond and still hold their shares."""
    if current.operation is not Operation.UNREACHABLE:
        return current
    return replace(current, ready=ReadyState.ACTIVE, operation=Operation.IDLE, errors=())


def lost(current: Partition, error: str, now: float) -> Partition:
    """Return the record after a machine no longer holds its share, or an IPU of it failed.

    A failed partition keeps its earlier errors. A partition with an operation in progress is returned
    unchanged: that operation succeeds or fails by itself.
    """
    if current.operation is Operation.FAILED:
        errors = current.errors if error in current.errors else (*current.errors, error)[:MAX_ERRORS]
        return current if errors == current.errors else failed(current, errors)
    if current.operation not in (Operation.IDLE, Operation.UNREACHABLE):
        return current
    return _with_expired_retries(failed(current, (error,)), now)


def reset(current: Partition, ipus: tuple[PlacedIpu, ...] | None = None) -> Partition:
    """Return the record of a requested reset, on other IPUs when some are given.

    A reset also cancels a delayed removal. Otherwise such a removal ends only with its success.
    """
    if current.operation is Operation.CREATING:
        raise RuleViolation(Code.FAILED_PRECONDITION, "it is being created. Try again when it is active")
    if current.operation is Operation.REMOVING and not current.errors:
        raise RuleViolation(Code.FAILED_PRECONDITION, "it is being removed. Create it again after its removal")
    return _resetting(replace(current, retries=0, last_auto_reset=None), ipus)


def auto_reset(current: Partition, now: float, ipus: tuple[PlacedIpu, ...] | None = None) -> Partition:
    """Return the record of an automatic reset, which ``may_auto_reset`` has allowed."""
    return _resetting(replace(current, retries=current.retries + 1, last_auto_reset=now), ipus)


def removing(current: Partition) -> Partition:
    """Return the record of a removal; the identical record when the removal is in progress."""
    if current.operation is Operation.REMOVING:
        return current
    return replace(current, ready=ReadyState.PENDING, operation=Operation.REMOVING, errors=())


def may_auto_reset(record: Partition) -> bool:
    """Return whether a partition is to be reset automatically as soon as that can succeed."""
    return record.operation is Operation.FAILED and _has_retries(record)


def may_relocate(record: Partition) -> bool:
    """Return whether a partition is to be moved automatically while one of its machines is down."""
    return record.operation in (Operation.FAILED, Operation.UNREACHABLE) and record.relocatable and _has_retries(record)


def auto_reset_due(record: Partition) -> float:
    """Return the earliest time of the next automatic reset."""
    if not record.retries or record.last_auto_reset is None:
        return 0.0
    return record.last_auto_reset + min(FIRST_DELAY * 2.0 ** min(record.retries - 1, 16), MAX_DELAY)


def find_relocation(
    state: State, current: Partition, unavailable: frozenset[str], quarantined: Mapping[str, int]
) -> tuple[PlacedIpu, ...] | None:
    """Return IPUs of the same shape in its allocation; may include its own.

    Agents that are down or out of service, and IPUs in quarantine, are excluded (see ``Context``).

    Returns None when no place is free. The partition must be in the state.
    """
    occupancy = occupancy_of(state, state.allocations[current.allocation], unavailable, quarantined)
    occupied = bytearray(occupancy.occupied)
    for agent, ipu in state.machines_of(current):
        if agent not in unavailable and agent not in state.out_of_service and not quarantined.get(agent, 0) >> ipu & 1:
            occupied[state.position_of[agent] - occupancy.first] &= ~(1 << ipu)
    block = placement.place(occupancy._replace(occupied=occupied), current.size, current.num_segments)
    return block and block.placed()


def relocations(
    state: State,
    records: Iterable[Partition],
    unavailable: frozenset[str],
    quarantined: Mapping[str, int],
    now: float,
) -> list[Partition]:
    """Return the records of the partitions that can move, in order, each after the moves of the previous ones.

    The partitions must be in the state, which is modified meanwhile and restored before this returns.
    """
    moved: list[Partition] = []
    undo: list[list[Change]] = []
    try:
        for record in records:
            ipus = find_relocation(state, record, unavailable, quarantined)
            if ipus is not None:
                moved.append(auto_reset(record, now, ipus))
                undo.append(state.apply([Put(moved[-1])]))
    finally:
        for changes in reversed(undo):
            state.apply(changes)
    return moved


def ipus_by_agent(state: State, record: Partition) -> dict[str, list[int]]:
    """Return, for each agent, the indices of ``record.ipus`` on its machine, in order.

    The partition must be in the state, which must not change meanwhile.
    """
    indices: dict[str, list[int]] = {}
    for index, (agent, _) in enumerate(state.machines_of(record)):
        indices.setdefault(agent, []).append(index)
    return indices


def _with_expired_retries(record: Partition, now: float) -> Partition:
    """Return the record of a new failure: earlier automatic resets no longer count after RETRY_EXPIRY."""
    if record.last_auto_reset is not None and now - record.last_auto_reset >= RETRY_EXPIRY:
        return replace(record, retries=0)
    return record


def _has_retries(record: Partition) -> bool:
    return not record.disable_auto_reset and record.retries < record.max_retries


def _resetting(record: Partition, ipus: tuple[PlacedIpu, ...] | None) -> Partition:
    record = replace(record, ready=ReadyState.PENDING, operation=Operation.RESETTING, errors=())
    if ipus is not None and ipus != record.ipus:
        record = replace(record, ipus=ipus, devices=())
    return record
