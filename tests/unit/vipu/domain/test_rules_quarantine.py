# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUs in quarantine: no partition may use them."""

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.model import PlacedIpu
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import PartitionSpec
from tests.unit.vipu.domain.rules_support import create, machines, pod, rejected

SOME = Context(quarantined={"ag01": 0b0001, "ag02": 0b1000, "ag09": 0b1111})


def test_placement_avoids_them() -> None:
    state = pod(2)
    create(state, PartitionSpec("p1", 2, "a1"), SOME)
    create(state, PartitionSpec("p2", 2, "a1"), SOME)
    used = {place for id in ("p1", "p2") for place in machines(state, id)}
    assert used == {("ag01", 2), ("ag01", 3), ("ag02", 0), ("ag02", 1)}
    create(state, PartitionSpec("p3", 1, "a1"), SOME)
    create(state, PartitionSpec("p4", 1, "a1"), SOME)
    assert sorted([*machines(state, "p3"), *machines(state, "p4")]) == [("ag01", 1), ("ag02", 2)]
    assert rejected(state, PartitionSpec("p5", 1, "a1"), SOME) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot create partition 'p5': allocation 'a1' has no free IPUs. A block that would fit is on 'ag02', which "
        "has IPUs in quarantine.",
    )


def test_a_used_ipu_may_also_be_in_quarantine() -> None:
    state = pod(1)
    create(state, PartitionSpec("p1", 1, "a1"))
    (place,) = machines(state, "p1")
    context = Context(quarantined={"ag01": 1 << place[1]})
    assert rules.fits(state, "a1", 1, context) == 3


@pytest.mark.parametrize(("size", "number"), [(1, 6), (2, 2), (4, 0)])
def test_they_do_not_count_as_free(size: int, number: int) -> None:
    assert rules.fits(pod(2), "a1", size, SOME) == number


def test_those_of_other_allocations_do_not_matter() -> None:
    state = pod(4, allocations={"a1": 2, "a2": 2})
    assert rules.fits(state, "a1", 4, Context(quarantined={"ag03": 15, "ag04": 15})) == 2
    assert rules.fits(state, "a2", 4, Context(quarantined={"ag04": 1})) == 1


def test_machines_that_are_down_are_named_first() -> None:
    context = Context(unavailable=frozenset(["ag01"]), quarantined={"ag01": 1})
    assert "'ag01', which is down." in rejected(pod(1), PartitionSpec("p", 4, "a1"), context)[1]


def test_they_cannot_be_listed() -> None:
    state = pod(2)
    ipus = tuple(PlacedIpu(0, 0, number, 0) for number in range(4))
    assert rejected(state, PartitionSpec("p", 4, cluster="cl0", ipus=ipus), SOME) == (
        Code.FAILED_PRECONDITION,
        "Cannot create partition 'p': IPU 0 of agent 'ag01' is in quarantine. An administrator can release it.",
    )
    create(state, PartitionSpec("p", 2, cluster="cl0", ipus=ipus[2:]), SOME)
