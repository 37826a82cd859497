# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a partition as pure transitions of its record, and where it may move. No I/O.

A transition gives the record that takes the place of the current one. Those that somebody asked for
raise Refused when the partition cannot go there from where it is. Times are seconds since 1970.

Automatic resets are counted in ``retries``, up to ``max_retries``; then the partition stays ERROR.
The count stands after a success, for the status to show it. It begins anew with a reset that
somebody asks for, and when the partition fails after it was well for FORGIVEN seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from openipu.vipu import placement
from openipu.vipu.capacity import room_of
from openipu.vipu.checks import Code, Refused
from openipu.vipu.model import Device, Operation, Partition, PlacedIpu, Ready, State

FORGIVEN = 600.0  # seconds
FIRST_DELAY = 0.5  # seconds from the first automatic reset to the second; doubled for every further one
LONGEST_DELAY = 30.0
MOST_ERRORS = 8  # sentences kept of one failure


def configured(current: Partition, devices: Sequence[Device]) -> Partition:
    """All agents have brought their share up."""
    return replace(current, ready=Ready.ACTIVE, operation=Operation.IDLE, errors=(), devices=tuple(devices))


def failed(current: Partition, errors: Iterable[str]) -> Partition:
    """What was being done to it did not succeed."""
    return replace(current, ready=Ready.ERROR, operation=Operation.FAILED, errors=tuple(errors)[:MOST_ERRORS])


def held_up(current: Partition, errors: Iterable[str]) -> Partition:
    """A machine cannot be told of its removal for now: it tells why, and goes on being removed."""
    told = tuple(errors)[:MOST_ERRORS]
    if current.operation is not Operation.REMOVING or current.errors == told:
        return current
    return replace(current, ready=Ready.ERROR, errors=told)


def lost(current: Partition, error: str, now: float) -> Partition:
    """A machine or an IPU failed under it; one that has failed already keeps what was wrong first.

    A partition that is being worked on stays as it is: that work succeeds or fails by itself.
    """
    if current.operation is Operation.FAILED and error not in current.errors:
        return failed(current, (*current.errors, error))
    if current.operation is not Operation.IDLE:
        return current
    record = failed(current, (error,))
    if record.last_auto_reset is not None and now - record.last_auto_reset >= FORGIVEN:
        record = replace(record, retries=0)
    return record


def reset(current: Partition, ipus: tuple[PlacedIpu, ...] | None = None) -> Partition:
    """Bring it up anew because somebody asked; on other IPUs when some are given.

    A removal that is held up ends with that, and by nothing else than success and this.
    """
    if current.operation is Operation.CREATING:
        raise Refused(Code.FAILED_PRECONDITION, "it is being created; try again when it is active")
    if current.operation is Operation.REMOVING and not current.errors:
        raise Refused(Code.FAILED_PRECONDITION, "it is being removed")
    return _resetting(replace(current, retries=0, last_auto_reset=None), ipus)


def auto_reset(current: Partition, now: float, ipus: tuple[PlacedIpu, ...] | None = None) -> Partition:
    """Bring it up anew by itself; ``may_auto_reset`` has allowed it."""
    return _resetting(replace(current, retries=current.retries + 1, last_auto_reset=now), ipus)


def removing(current: Partition) -> Partition:
    """Take it off its machines; one that is being removed stays the very same record."""
    if current.operation is Operation.REMOVING:
        return current
    return replace(current, ready=Ready.PENDING, operation=Operation.REMOVING, errors=())


def may_auto_reset(record: Partition) -> bool:
    """Whether a partition is to be reset by itself once that can succeed."""
    return (
        record.operation is Operation.FAILED and not record.disable_auto_reset and record.retries < record.max_retries
    )


def auto_reset_due(record: Partition) -> float:
    """When the next automatic reset may be tried."""
    if not record.retries or record.last_auto_reset is None:
        return 0.0
    return record.last_auto_reset + min(FIRST_DELAY * 2.0 ** min(record.retries - 1, 16), LONGEST_DELAY)


def other_place(state: State, current: Partition, unavailable: frozenset[str]) -> tuple[PlacedIpu, ...] | None:
    """IPUs of the same shape in its allocation that avoid agents that are down; its own may be among them.

    None when no place is free. The partition must be in the state.
    """
    room = room_of(state, state.allocations[current.allocation], unavailable)
    occupied = bytearray(room.occupied)
    for agent, ipu in state.machines_of(current):
        if agent not in unavailable:
            occupied[state.position_of[agent] - room.first] &= ~(1 << ipu)
    block = placement.place(room._replace(occupied=occupied), current.size, current.num_segments)
    return block and block.placed()


def places(state: State, record: Partition) -> dict[str, list[int]]:
    """Agent -> which of ``record.ipus`` are on its machine, in order.

    Raises KeyError when the cluster is not in the state (any more).
    """
    indices: dict[str, list[int]] = {}
    for index, (agent, _) in enumerate(state.machines_of(record)):
        indices.setdefault(agent, []).append(index)
    return indices


def _resetting(record: Partition, ipus: tuple[PlacedIpu, ...] | None) -> Partition:
    record = replace(record, ready=Ready.PENDING, operation=Operation.RESETTING, errors=())
    if ipus is not None and ipus != record.ipus:
        record = replace(record, ipus=ipus, devices=())
    return record
