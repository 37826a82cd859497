# SPDX-License-Identifier: GPL-3.0-or-later
"""State transitions of a partition, single and in any order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.vipu.domain import partition_state, rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import RuleViolation
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import Agent, Cluster, Device, Operation, Partition, PlacedIpu, Put, ReadyState
from openipu.vipu.domain.specs import AllocationSpec, PartitionSpec
from openipu.vipu.domain.state import State

NOW = 1_800_000_000.0
DEVICE = Device("127.0.0.1", 1, 2, 0, 2, "chip", "1", "2", "3")
PARTITION = Partition("p", "a0", "cl0", (PlacedIpu(0, 0, 0, 0),))


def in_operation(operation: Operation) -> Partition:
    broken = operation in (Operation.FAILED, Operation.UNREACHABLE)
    ready = ReadyState.ERROR if broken else ReadyState.ACTIVE if operation is Operation.IDLE else ReadyState.PENDING
    errors = ("first.",) if broken else ()
    return replace(PARTITION, ready=ready, operation=operation, errors=errors)


ALL = [in_operation(operation) for operation in Operation]


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.operation.name)
def test_configured(record: Partition) -> None:
    after = partition_state.configured(record, [DEVICE])
    assert (after.ready, after.operation, after.errors, after.devices) == (
        ReadyState.ACTIVE,
        Operation.IDLE,
        (),
        (DEVICE,),
    )


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.operation.name)
def test_failed_keeps_a_bounded_number_of_errors(record: Partition) -> None:
    after = partition_state.failed(record, (f"{number}." for number in range(100)))
    assert (after.ready, after.operation) == (ReadyState.ERROR, Operation.FAILED)
    assert after.errors == tuple(f"{number}." for number in range(partition_state.MAX_ERRORS))


@pytest.mark.parametrize(
    ("operation", "errors"),
    [
        (Operation.IDLE, ("lost.",)),
        (Operation.FAILED, ("first.", "lost.")),
        (Operation.UNREACHABLE, ("lost.",)),
        (Operation.CREATING, None),
        (Operation.REMOVING, None),
        (Operation.RESETTING, None),
    ],
)
def test_lost(operation: Operation, errors: tuple[str, ...] | None) -> None:
    record = in_operation(operation)
    after = partition_state.lost(record, "lost.", NOW)
    if errors is None:
        assert after is record
    else:
        assert (after.ready, after.operation, after.errors) == (ReadyState.ERROR, Operation.FAILED, errors)
        assert partition_state.lost(after, "lost.", NOW) is after, "the same message once"


@pytest.mark.parametrize(
    ("operation", "after", "errors"),
    [
        (Operation.IDLE, Operation.UNREACHABLE, ("silent.",)),
        (Operation.UNREACHABLE, Operation.UNREACHABLE, ("first.", "silent.")),
        (Operation.FAILED, Operation.FAILED, ("first.", "silent.")),
        (Operation.CREATING, Operation.CREATING, ()),
        (Operation.REMOVING, Operation.REMOVING, ()),
        (Operation.RESETTING, Operation.RESETTING, ()),
    ],
)
def test_unreachable(operation: Operation, after: Operation, errors: tuple[str, ...]) -> None:
    record = partition_state.unreachable(in_operation(operation), "silent.", NOW)
    assert (record.operation, record.errors) == (after, errors)
    assert partition_state.unreachable(record, "silent.", NOW) is record
    many = in_operation(operation)
    for number in range(100):
        many = partition_state.unreachable(many, f"{number}.", NOW)
    assert len(many.errors) <= partition_state.MAX_ERRORS


@pytest.mark.parametrize("fail", [partition_state.unreachable, partition_state.lost])
@pytest.mark.parametrize(
    ("seconds", "retries"), [(partition_state.RETRY_EXPIRY - 1, 3), (partition_state.RETRY_EXPIRY, 0)]
)
def test_old_retries_do_not_count(fail: Callable[..., Partition], seconds: float, retries: int) -> None:
    record = replace(in_operation(Operation.IDLE), retries=3, last_auto_reset=NOW)
    assert fail(record, "silent.", NOW + seconds).retries == retries


def test_more_errors_than_are_stored_change_nothing() -> None:
    full = partition_state.failed(in_operation(Operation.IDLE), [f"{n}." for n in range(partition_state.MAX_ERRORS)])
    assert partition_state.lost(full, "another.", NOW) is full


@pytest.mark.parametrize("operation", Operation)
def test_only_an_unreachable_partition_is_regained(operation: Operation) -> None:
    record = replace(in_operation(operation), devices=(DEVICE,), retries=2)
    after = partition_state.regained(record)
    if operation is Operation.UNREACHABLE:
        assert after == replace(in_operation(Operation.IDLE), devices=(DEVICE,), retries=2)
    else:
        assert after is record


def test_which_partitions_move() -> None:
    movable = [replace(record, relocatable=True) for record in ALL]
    assert [record.operation for record in movable if partition_state.may_relocate(record)] == [
        Operation.FAILED,
        Operation.UNREACHABLE,
    ]
    assert not any(map(partition_state.may_relocate, ALL))
    assert not any(partition_state.may_relocate(replace(record, disable_auto_reset=True)) for record in movable)
    assert not any(partition_state.may_relocate(replace(record, retries=3)) for record in movable)


def test_retries_expire_after_a_long_time_without_failures() -> None:
    record = replace(in_operation(Operation.IDLE), retries=3, last_auto_reset=NOW)
    assert partition_state.lost(record, "lost.", NOW + partition_state.RETRY_EXPIRY - 1).retries == 3
    assert partition_state.lost(record, "lost.", NOW + partition_state.RETRY_EXPIRY).retries == 0


@pytest.mark.parametrize("operation", [Operation.CREATING, Operation.REMOVING])
def test_a_creation_or_removal_cannot_be_reset(operation: Operation) -> None:
    with pytest.raises(RuleViolation) as rejection:
        partition_state.reset(in_operation(operation))
    assert rejection.value.code is rules.Code.FAILED_PRECONDITION


@pytest.mark.parametrize("operation", [Operation.IDLE, Operation.FAILED, Operation.RESETTING])
def test_a_reset_clears_the_retries(operation: Operation) -> None:
    before = replace(in_operation(operation), retries=3, last_auto_reset=NOW)
    after = partition_state.reset(before)
    assert (after.ready, after.operation, after.errors) == (ReadyState.PENDING, Operation.RESETTING, ())
    assert (after.retries, after.last_auto_reset) == (0, None)
    assert after is not before, "an operation of the former record has no effect on the new one"


def test_moving_drops_the_devices() -> None:
    record = replace(in_operation(Operation.FAILED), devices=(DEVICE,))
    free_ipus = (PlacedIpu(0, 0, 5, 0),)
    assert partition_state.reset(record).devices == (DEVICE,)
    assert partition_state.reset(record, record.ipus).ipus is record.ipus
    moved = partition_state.auto_reset(record, NOW, free_ipus)
    assert (moved.ipus, moved.devices, moved.retries, moved.last_auto_reset) == (free_ipus, (), 1, NOW)


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.operation.name)
def test_anything_can_be_removed(record: Partition) -> None:
    after = partition_state.removing(record)
    assert (after.ready, after.operation) == (ReadyState.PENDING, Operation.REMOVING)
    assert partition_state.removing(after) is after


def test_automatic_resets_are_bounded_and_wait_longer_each_time() -> None:
    record, waits = in_operation(Operation.FAILED), []
    while partition_state.may_auto_reset(record):
        waits.append(max(0.0, partition_state.auto_reset_due(record) - (record.last_auto_reset or 0.0)))
        record = partition_state.failed(partition_state.auto_reset(record, NOW), ["again."])
    assert record.retries == record.max_retries == 3
    assert waits == [0.0, 0.5, 1.0]
    assert partition_state.auto_reset_due(replace(record, retries=1_000_000)) == NOW + partition_state.MAX_DELAY


def test_which_partitions_are_reset_automatically() -> None:
    assert [record.operation for record in ALL if partition_state.may_auto_reset(record)] == [Operation.FAILED]
    failed = in_operation(Operation.FAILED)
    assert not partition_state.may_auto_reset(replace(failed, disable_auto_reset=True))
    assert not partition_state.may_auto_reset(replace(failed, max_retries=0))


_STEPS = st.sampled_from(
    ["configured", "failed", "lost", "reset", "auto_reset", "removing", "held_up", "silent", "regained"]
)


def test_a_blocked_removal_reports_errors_and_can_be_reset() -> None:
    record = in_operation(Operation.REMOVING)
    held = partition_state.removal_blocked(record, ["ag01 is down.", "ag02 is down."])
    assert (held.ready, held.operation, held.errors) == (
        ReadyState.ERROR,
        Operation.REMOVING,
        ("ag01 is down.", "ag02 is down."),
    )
    assert partition_state.removal_blocked(held, held.errors) is held
    assert partition_state.removal_blocked(held, ["no."] * 100).errors == ("no.",) * partition_state.MAX_ERRORS
    assert partition_state.removing(held) is held
    assert partition_state.lost(held, "lost.", NOW) is held
    assert not partition_state.may_auto_reset(held)
    assert partition_state.reset(held).operation is Operation.RESETTING
    idle = in_operation(Operation.IDLE)
    assert partition_state.removal_blocked(idle, ["late."]) is idle


@given(st.lists(st.tuples(_STEPS, st.floats(0, 2000)), max_size=40), st.integers(0, 5))
def test_the_record_stays_valid_in_any_order(steps: list[tuple[str, float]], most: int) -> None:
    record, now = replace(PARTITION, max_retries=most), NOW
    for step, seconds in steps:
        now += seconds
        before = record
        match step:
            case "configured" if record.operation in (Operation.CREATING, Operation.RESETTING):
                record = partition_state.configured(record, [DEVICE])
            case "failed" if record.operation in (Operation.CREATING, Operation.RESETTING):
                record = partition_state.failed(record, ["no."])
            case "lost":
                record = partition_state.lost(record, f"lost at {now}.", now)
            case "silent":
                record = partition_state.unreachable(record, f"silent at {now}.", now)
            case "regained":
                record = partition_state.regained(record)
            case "reset":
                with contextlib.suppress(RuleViolation):
                    record = partition_state.reset(record)
            case "auto_reset" if partition_state.may_auto_reset(record):
                record = partition_state.auto_reset(record, now)
            case "removing":
                record = partition_state.removing(record)
            case "held_up":
                record = partition_state.removal_blocked(record, [f"down at {now}."])
        if before.operation is Operation.REMOVING:
            assert record.operation is Operation.REMOVING or (step, bool(before.errors)) == ("reset", True)
        assert (record.ready is ReadyState.ACTIVE) == (record.operation is Operation.IDLE)
        assert (record.ready is ReadyState.ERROR) == bool(record.errors)
        assert record.ready is ReadyState.ERROR or record.operation not in (Operation.FAILED, Operation.UNREACHABLE)
        assert 0 <= record.retries <= most
        assert len(record.errors) <= partition_state.MAX_ERRORS


Filled = tuple[State, frozenset[str], dict[str, int]]


@st.composite
def _filled(draw: st.DrawFn) -> Filled:
    """Draw a cluster with partitions of some sizes, machines that are down, and IPUs in quarantine."""
    ilds, per_ild = draw(st.sampled_from([(1, 8), (2, 4), (4, 2)]))
    ids = tuple(f"ag{number}" for number in range(ilds * per_ild))
    state = State()
    state.apply([Put(Agent(id, "127.0.0.1", 1 + number)) for number, id in enumerate(ids)])
    state.apply([Put(Cluster("cl0", ids, num_ilds=ilds))])
    low = draw(st.integers(0, len(ids) - 1))
    high = draw(st.integers(low + 1, len(ids)))
    state.apply(rules.create(state, AllocationSpec("a0", "cl0", agents=ids[low:high]), Context()))
    for number, size in enumerate(draw(st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), max_size=12))):
        with contextlib.suppress(rules.RuleError):  # the cluster is full
            state.apply(rules.create(state, PartitionSpec(f"p{number}", size, allocation="a0"), Context()))
    quarantined = draw(st.dictionaries(st.sampled_from(ids), st.integers(1, 15), max_size=3))
    return state, frozenset(draw(st.sets(st.sampled_from(ids)))), quarantined


def _uses_quarantine(state: State, record: Partition, quarantined: dict[str, int]) -> bool:
    return any(quarantined.get(agent, 0) >> ipu & 1 for agent, ipu in state.machines_of(record))


@given(_filled())
def test_a_relocation_is_free_and_of_the_same_shape(filled: Filled) -> None:
    state, down, quarantined = filled
    for id, record in list(state.partitions.items()):
        ipus = partition_state.find_relocation(state, record, down, quarantined)
        if ipus is None:
            continue
        moved = partition_state.auto_reset(partition_state.failed(record, ["lost."]), NOW, ipus)
        after = state.copy()
        after.apply([Put(moved)])
        assert violations(after) == []
        assert not down.intersection(agent for agent, _ in after.machines_of(moved))
        assert not _uses_quarantine(after, moved, quarantined)
        for other in state.partitions.values():
            if other.id != id:
                taken = {(ipu.ild, ipu.topology_id) for ipu in other.ipus}
                assert not taken.intersection((ipu.ild, ipu.topology_id) for ipu in ipus)


@given(_filled())
def test_a_relocation_always_exists_when_no_machine_is_down(
    filled: Filled,
) -> None:
    state, _, _ = filled
    for record in state.partitions.values():
        assert partition_state.find_relocation(state, record, frozenset(), {}) is not None
        assert sorted(
            index for indices in partition_state.ipus_by_agent(state, record).values() for index in indices
        ) == list(range(record.size))


@given(_filled())
def test_relocations_fit_together(filled: Filled) -> None:
    state, down, quarantined = filled
    before = state.copy()
    failed = [partition_state.failed(record, ["lost."]) for record in state.partitions.values()]
    state.apply([Put(record) for record in failed])
    moved = partition_state.relocations(state, failed, down, quarantined, NOW)
    assert [state.partitions[record.id] for record in failed] == failed, "the state is restored"
    before.apply([Put(record) for record in moved])
    assert violations(before) == []
    for record in moved:
        assert not down.intersection(agent for agent, _ in before.machines_of(record))
        assert not _uses_quarantine(before, record, quarantined)
