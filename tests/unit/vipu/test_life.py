# SPDX-License-Identifier: GPL-3.0-or-later
"""The transitions of a partition's life, one by one and in any order."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openipu.vipu import life, rules
from openipu.vipu.checks import Context, Refused
from openipu.vipu.invariants import violations
from openipu.vipu.model import Agent, Cluster, Device, Operation, Partition, PlacedIpu, Put, Ready, State
from openipu.vipu.specs import AllocationSpec, PartitionSpec

NOW = 1_800_000_000.0
DEVICE = Device("127.0.0.1", 1, 2, 0, 2, "chip", "1", "2", "3")
PARTITION = Partition("p", "a0", "cl0", (PlacedIpu(0, 0, 0, 0),))


def in_operation(operation: Operation) -> Partition:
    ready = {Operation.IDLE: Ready.ACTIVE, Operation.FAILED: Ready.ERROR}.get(operation, Ready.PENDING)
    errors = ("first.",) if operation is Operation.FAILED else ()
    return replace(PARTITION, ready=ready, operation=operation, errors=errors)


ALL = [in_operation(operation) for operation in Operation]


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.operation.name)
def test_configured(record: Partition) -> None:
    after = life.configured(record, [DEVICE])
    assert (after.ready, after.operation, after.errors, after.devices) == (Ready.ACTIVE, Operation.IDLE, (), (DEVICE,))


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.operation.name)
def test_failed_keeps_a_bounded_number_of_sentences(record: Partition) -> None:
    after = life.failed(record, (f"{number}." for number in range(100)))
    assert (after.ready, after.operation) == (Ready.ERROR, Operation.FAILED)
    assert after.errors == tuple(f"{number}." for number in range(life.MOST_ERRORS))


@pytest.mark.parametrize(
    ("operation", "errors"),
    [
        (Operation.IDLE, ("lost.",)),
        (Operation.FAILED, ("first.", "lost.")),
        (Operation.CREATING, None),
        (Operation.REMOVING, None),
        (Operation.RESETTING, None),
    ],
)
def test_lost(operation: Operation, errors: tuple[str, ...] | None) -> None:
    record = in_operation(operation)
    after = life.lost(record, "lost.", NOW)
    if errors is None:
        assert after is record
    else:
        assert (after.ready, after.operation, after.errors) == (Ready.ERROR, Operation.FAILED, errors)
        assert life.lost(after, "lost.", NOW) is after, "the same sentence once"


def test_a_loss_after_a_long_time_of_health_forgives_the_resets_before() -> None:
    record = replace(in_operation(Operation.IDLE), retries=3, last_auto_reset=NOW)
    assert life.lost(record, "lost.", NOW + life.FORGIVEN - 1).retries == 3
    assert life.lost(record, "lost.", NOW + life.FORGIVEN).retries == 0


@pytest.mark.parametrize("operation", [Operation.CREATING, Operation.REMOVING])
def test_what_cannot_be_reset(operation: Operation) -> None:
    with pytest.raises(Refused) as refusal:
        life.reset(in_operation(operation))
    assert refusal.value.code is rules.Code.FAILED_PRECONDITION


@pytest.mark.parametrize("operation", [Operation.IDLE, Operation.FAILED, Operation.RESETTING])
def test_a_reset_counts_anew(operation: Operation) -> None:
    before = replace(in_operation(operation), retries=3, last_auto_reset=NOW)
    after = life.reset(before)
    assert (after.ready, after.operation, after.errors) == (Ready.PENDING, Operation.RESETTING, ())
    assert (after.retries, after.last_auto_reset) == (0, None)
    assert after is not before, "what was under way for the record before is out of date"


def test_moving_forgets_the_devices() -> None:
    record = replace(in_operation(Operation.FAILED), devices=(DEVICE,))
    elsewhere = (PlacedIpu(0, 0, 5, 0),)
    assert life.reset(record).devices == (DEVICE,)
    assert life.reset(record, record.ipus).ipus is record.ipus
    moved = life.auto_reset(record, NOW, elsewhere)
    assert (moved.ipus, moved.devices, moved.retries, moved.last_auto_reset) == (elsewhere, (), 1, NOW)


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.operation.name)
def test_anything_can_be_removed(record: Partition) -> None:
    after = life.removing(record)
    assert (after.ready, after.operation) == (Ready.PENDING, Operation.REMOVING)
    assert life.removing(after) is after


def test_automatic_resets_are_bounded_and_wait_longer_each_time() -> None:
    record, waits = in_operation(Operation.FAILED), []
    while life.may_auto_reset(record):
        waits.append(max(0.0, life.auto_reset_due(record) - (record.last_auto_reset or 0.0)))
        record = life.failed(life.auto_reset(record, NOW), ["again."])
    assert record.retries == record.max_retries == 3
    assert waits == [0.0, 0.5, 1.0]
    assert life.auto_reset_due(replace(record, retries=1_000_000)) == NOW + life.LONGEST_DELAY


def test_who_is_reset_by_itself() -> None:
    assert [record.operation for record in ALL if life.may_auto_reset(record)] == [Operation.FAILED]
    failed = in_operation(Operation.FAILED)
    assert not life.may_auto_reset(replace(failed, disable_auto_reset=True))
    assert not life.may_auto_reset(replace(failed, max_retries=0))


_STEPS = st.sampled_from(["configured", "failed", "lost", "reset", "auto_reset", "removing", "held_up"])


def test_a_removal_that_is_held_up_tells_why_and_can_be_reset() -> None:
    record = in_operation(Operation.REMOVING)
    held = life.held_up(record, ["ag01 is down.", "ag02 is down."])
    assert (held.ready, held.operation, held.errors) == (
        Ready.ERROR,
        Operation.REMOVING,
        ("ag01 is down.", "ag02 is down."),
    )
    assert life.held_up(held, held.errors) is held
    assert life.held_up(held, ["no."] * 100).errors == ("no.",) * life.MOST_ERRORS
    assert life.removing(held) is held
    assert life.lost(held, "lost.", NOW) is held
    assert not life.may_auto_reset(held)
    assert life.reset(held).operation is Operation.RESETTING
    idle = in_operation(Operation.IDLE)
    assert life.held_up(idle, ["late."]) is idle


@given(st.lists(st.tuples(_STEPS, st.floats(0, 2000)), max_size=40), st.integers(0, 5))
def test_in_any_order_the_record_stays_sound(steps: list[tuple[str, float]], most: int) -> None:
    record, now = replace(PARTITION, max_retries=most), NOW
    for step, seconds in steps:
        now += seconds
        before = record
        match step:
            case "configured" if record.operation in (Operation.CREATING, Operation.RESETTING):
                record = life.configured(record, [DEVICE])
            case "failed" if record.operation in (Operation.CREATING, Operation.RESETTING):
                record = life.failed(record, ["no."])
            case "lost":
                record = life.lost(record, f"lost at {now}.", now)
            case "reset":
                with contextlib.suppress(Refused):
                    record = life.reset(record)
            case "auto_reset" if life.may_auto_reset(record):
                record = life.auto_reset(record, now)
            case "removing":
                record = life.removing(record)
            case "held_up":
                record = life.held_up(record, [f"down at {now}."])
        if before.operation is Operation.REMOVING:
            assert record.operation is Operation.REMOVING or (step, bool(before.errors)) == ("reset", True)
        assert (record.ready is Ready.ACTIVE) == (record.operation is Operation.IDLE)
        assert (record.ready is Ready.ERROR) == bool(record.errors)
        assert record.ready is Ready.ERROR or record.operation is not Operation.FAILED
        assert 0 <= record.retries <= most
        assert len(record.errors) <= life.MOST_ERRORS


@st.composite
def _filled(draw: st.DrawFn) -> tuple[State, frozenset[str]]:
    """A cluster with partitions of some sizes, and some machines that are down."""
    ilds, per_ild = draw(st.sampled_from([(1, 8), (2, 4), (4, 2)]))
    ids = tuple(f"ag{number}" for number in range(ilds * per_ild))
    state = State()
    state.apply([Put(Agent(id, "127.0.0.1", 1 + number)) for number, id in enumerate(ids)])
    state.apply([Put(Cluster("cl0", ids, num_ilds=ilds))])
    low = draw(st.integers(0, len(ids) - 1))
    high = draw(st.integers(low + 1, len(ids)))
    state.apply(rules.create(state, AllocationSpec("a0", "cl0", agents=ids[low:high]), Context()))
    for number, size in enumerate(draw(st.lists(st.sampled_from([1, 2, 4, 8, 16, 32]), max_size=12))):
        with contextlib.suppress(rules.RuleError):  # it is full
            state.apply(rules.create(state, PartitionSpec(f"p{number}", size, allocation="a0"), Context()))
    return state, frozenset(draw(st.sets(st.sampled_from(ids))))


@given(_filled())
def test_another_place_is_free_and_of_the_same_shape(filled: tuple[State, frozenset[str]]) -> None:
    state, down = filled
    for id, record in list(state.partitions.items()):
        ipus = life.other_place(state, record, down)
        if ipus is None:
            continue
        moved = life.auto_reset(life.failed(record, ["lost."]), NOW, ipus)
        after = state.copy()
        after.apply([Put(moved)])
        assert violations(after) == []
        assert not down.intersection(agent for agent, _ in after.machines_of(moved))
        for other in state.partitions.values():
            if other.id != id:
                taken = {(ipu.ild, ipu.topology_id) for ipu in other.ipus}
                assert not taken.intersection((ipu.ild, ipu.topology_id) for ipu in ipus)


@given(_filled())
def test_there_is_always_another_place_when_nothing_is_down(filled: tuple[State, frozenset[str]]) -> None:
    state, _ = filled
    for record in state.partitions.values():
        assert life.other_place(state, record, frozenset()) is not None
        assert sorted(index for indices in life.places(state, record).values() for index in indices) == list(
            range(record.size)
        )
