# SPDX-License-Identifier: GPL-3.0-or-later
"""What is counted of the lives of partitions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openipu.vipu import life
from openipu.vipu.life_meters import LifeMeters
from openipu.vipu.model import Operation, Partition, PlacedIpu

IPUS = tuple(PlacedIpu(0, 0, number, number) for number in range(2))
ELSEWHERE = tuple(PlacedIpu(0, 0, number + 4, number) for number in range(2))
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


def test_a_whole_life(meters: LifeMeters) -> None:
    meters.put(NEW, 100.0)
    active = life.configured(NEW, ())
    meters.put(active, 100.5)
    meters.put(active, 101.0)  # the same once more ends nothing
    meters.put(life.removing(active), 200.0)
    meters.delete("p", 203.0)
    meters.delete("p", 204.0)
    assert durations(meters) == {("creating", "ok"): 0.5, ("removing", "ok"): 3.0}
    assert values(meters, "vipu_partition_losses_total") == {(): 0.0}


def test_what_lasts_is_told_by_its_oldest() -> None:
    now = 100.0
    meters = LifeMeters(lambda: now)
    ages = "vipu_partition_operation_age_seconds"
    assert values(meters, ages) == {("creating",): 0.0, ("resetting",): 0.0, ("removing",): 0.0}
    for number in range(5):  # a busy controller: one after the other, and none of them for long
        meters.put(replace(NEW, id=f"p{number}"), now)
        now += 10.0
        assert values(meters, ages)[("creating",)] == 10.0
        meters.put(life.configured(replace(NEW, id=f"p{number}"), ()), now)
    stuck = life.removing(life.configured(NEW, ()))
    meters.put(stuck, now)
    now += 900.0
    meters.put(life.held_up(stuck, ["Agent 'ag01' does not answer."]), now)
    meters.put(life.removing(life.configured(replace(NEW, id="p1"), ())), now)
    assert values(meters, ages) == {("creating",): 0.0, ("resetting",): 0.0, ("removing",): 900.0}
    meters.delete("p", now)
    assert values(meters, ages)[("removing",)] == 0.0


def test_a_removal_that_is_held_up_is_one_operation_and_one_that_ends_with_a_reset_none(meters: LifeMeters) -> None:
    removing = life.removing(life.configured(NEW, ()))
    meters.put(removing, 10.0)
    held = life.held_up(removing, ["Agent 'ag01' does not answer."])
    meters.put(held, 12.0)
    meters.delete("p", 15.0)
    assert durations(meters) == {("removing", "ok"): 5.0}
    meters.put(held, 20.0)
    meters.put(life.reset(held), 30.0)
    meters.put(life.configured(life.reset(held), ()), 31.0)
    assert durations(meters) == {("removing", "ok"): 5.0, ("resetting", "ok"): 1.0}


def test_losses_resets_and_moves(meters: LifeMeters) -> None:
    active = life.configured(NEW, ())
    lost = life.lost(active, "It is gone.", 0.0)
    meters.put(active, 0.0)
    meters.put(lost, 1.0)
    meters.put(life.lost(lost, "And something else.", 0.0), 1.5)
    first = life.auto_reset(lost, 2.0)
    meters.put(first, 2.0)
    meters.put(life.failed(first, ["No."]), 2.5)
    moved = life.auto_reset(life.failed(first, ["No."]), 3.0, ELSEWHERE)
    meters.put(moved, 3.0)
    meters.put(life.configured(moved, ()), 5.0)
    assert values(meters, "vipu_partition_losses_total") == {(): 1.0}
    assert values(meters, "vipu_partition_auto_resets_total") == {(): 2.0}
    assert values(meters, "vipu_partition_moves_total") == {(): 1.0}
    assert durations(meters) == {("resetting", "failed"): 0.5, ("resetting", "ok"): 2.0}


def test_a_reset_that_somebody_asks_for_is_not_automatic_and_begins_anew(meters: LifeMeters) -> None:
    active = life.configured(NEW, ())
    meters.put(active, 0.0)
    asked = life.reset(active)
    meters.put(asked, 10.0)
    meters.put(replace(life.reset(asked)), 20.0)
    meters.put(life.configured(asked, ()), 21.0)
    assert values(meters, "vipu_partition_auto_resets_total") == {(): 0.0}
    assert durations(meters) == {("resetting", "ok"): 1.0}


def test_what_is_forgotten_leaves_nothing(meters: LifeMeters) -> None:
    meters.put(NEW, 0.0)
    meters.delete("p", 1.0)  # by force
    meters.put(replace(NEW, operation=Operation.IDLE), 5.0)
    assert durations(meters) == {}
