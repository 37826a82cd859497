# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of the lifecycle of partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.model import Operation, Partition, PlacedIpu
from openipu.vipu.lifecycle.meters import LifeMeters

IPUS = tuple(PlacedIpu(0, 0, number, number) for number in range(2))
OTHER_IPUS = tuple(PlacedIpu(0, 0, number + 4, number) for number in range(2))
NEW = Partition("p", "a1", "cl0", IPUS)


def values(meters: LifeMeters, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(value for label, value in sorted(sample.labels.items())): sample.value
        for family in meters.collect()
        for sample in family.samples
        if sample.name == name
    }


@pytest.fixture
def meters() -> LifeMeters:
    return LifeMeters()


def durations(meters: LifeMeters) -> dict[tuple[str, ...], float]:
    return values(meters, "vipu_partition_operation_duration_seconds_sum")


def test_durations_of_creation_and_removal(meters: LifeMeters) -> None:
    meters.put(NEW, 100.0)
    active = partition_state.configured(NEW, ())
    meters.put(active, 100.5)
    meters.put(active, 101.0)  # an unchanged record ends no operation
    meters.put(partition_state.removing(active), 200.0)
    meters.delete("p", 203.0)
    meters.delete("p", 204.0)
    assert durations(meters) == {("creating", "ok"): 0.5, ("removing", "ok"): 3.0}
    assert values(meters, "vipu_partition_losses_total") == {(): 0.0}


def test_the_age_is_that_of_the_oldest_operation() -> None:
    now = 100.0
    meters = LifeMeters(lambda: now)
    ages = "vipu_partition_operation_age_seconds"
    assert values(meters, ages) == {("creating",): 0.0, ("resetting",): 0.0, ("removing",): 0.0}
    for number in range(5):  # a busy controller: many short operations, one after the other
        meters.put(replace(NEW, id=f"p{number}"), now)
        now += 10.0
        assert values(meters, ages)[("creating",)] == 10.0
        meters.put(partition_state.configured(replace(NEW, id=f"p{number}"), ()), now)
    removing = partition_state.removing(partition_state.configured(NEW, ()))
    meters.put(removing, now)
    now += 900.0
    meters.put(partition_state.removal_blocked(removing, ["Agent 'ag01' does not respond."]), now)
    meters.put(partition_state.removing(partition_state.configured(replace(NEW, id="p1"), ())), now)
    assert values(meters, ages) == {("creating",): 0.0, ("resetting",): 0.0, ("removing",): 900.0}
    meters.delete("p", now)
    assert values(meters, ages)[("removing",)] == 0.0


def test_a_blocked_removal_is_one_operation_and_one_cancelled_by_a_reset_is_none(meters: LifeMeters) -> None:
    removing = partition_state.removing(partition_state.configured(NEW, ()))
    meters.put(removing, 10.0)
    blocked = partition_state.removal_blocked(removing, ["Agent 'ag01' does not respond."])
    meters.put(blocked, 12.0)
    meters.delete("p", 15.0)
    assert durations(meters) == {("removing", "ok"): 5.0}
    meters.put(blocked, 20.0)
    meters.put(partition_state.reset(blocked), 30.0)
    meters.put(partition_state.configured(partition_state.reset(blocked), ()), 31.0)
    assert durations(meters) == {("removing", "ok"): 5.0, ("resetting", "ok"): 1.0}


def test_losses_resets_and_moves(meters: LifeMeters) -> None:
    active = partition_state.configured(NEW, ())
    lost = partition_state.lost(active, "It is gone.", 0.0)
    meters.put(active, 0.0)
    meters.put(lost, 1.0)
    meters.put(partition_state.lost(lost, "And something else.", 0.0), 1.5)
    first = partition_state.auto_reset(lost, 2.0)
    meters.put(first, 2.0)
    meters.put(partition_state.failed(first, ["No."]), 2.5)
    moved = partition_state.auto_reset(partition_state.failed(first, ["No."]), 3.0, OTHER_IPUS)
    meters.put(moved, 3.0)
    meters.put(partition_state.configured(moved, ()), 5.0)
    assert values(meters, "vipu_partition_losses_total") == {(): 1.0}
    assert values(meters, "vipu_partition_auto_resets_total") == {(): 2.0}
    assert values(meters, "vipu_partition_moves_total") == {(): 1.0}
    assert durations(meters) == {("resetting", "failed"): 0.5, ("resetting", "ok"): 2.0}


def test_a_requested_reset_is_not_automatic_and_clears_the_retries(meters: LifeMeters) -> None:
    active = partition_state.configured(NEW, ())
    meters.put(active, 0.0)
    resetting = partition_state.reset(active)
    meters.put(resetting, 10.0)
    meters.put(replace(partition_state.reset(resetting)), 20.0)
    meters.put(partition_state.configured(resetting, ()), 21.0)
    assert values(meters, "vipu_partition_auto_resets_total") == {(): 0.0}
    assert durations(meters) == {("resetting", "ok"): 1.0}


def test_deleted_partitions_leave_no_samples(meters: LifeMeters) -> None:
    meters.put(NEW, 0.0)
    meters.delete("p", 1.0)  # forced removal
    meters.put(replace(NEW, operation=Operation.IDLE), 5.0)
    assert durations(meters) == {}
