# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions with listed IPUs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.vipu.domain import rules
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import PlacedIpu
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import create, machines, names, partition, pod, rejected


def listed(*topology_ids: int, ild: int = 0) -> tuple[PlacedIpu, ...]:
    """Return IPUs without routing ids."""
    return tuple(PlacedIpu(ild, 0, id, 0) for id in topology_ids)


def explicit(*ipus: PlacedIpu, id: str = "p", size: int = 0, **fields: object) -> PartitionSpec:
    return PartitionSpec(id, size, cluster="cl0", ipus=ipus, **fields)  # type: ignore[arg-type]


def test_zero_ids_leave_the_numbers_to_the_controller() -> None:
    state = pod(8)
    create(state, explicit(*listed(11, 8, 10, 9, 4, 5, 6, 7)))
    assert machines(state, "p") == [("ag02", n) for n in (3, 2, 1, 0)] + [("ag03", n) for n in (3, 2, 1, 0)]
    assert [ipu.routing_id for ipu in state.partitions["p"].ipus] == list(range(8))
    assert state.partitions["p"].allocation == "a1"
    create(state, explicit(PlacedIpu(0, 0, 0, 0), id="one", size=1))
    assert machines(state, "one") == [("ag01", 0)]


def test_given_ids_are_kept() -> None:
    state = pod(8)
    create(state, explicit(*(PlacedIpu(0, 0, id, 3 - id) for id in range(4)), size=4, allocation="a1"))
    assert [(ipu.topology_id, ipu.routing_id) for ipu in state.partitions["p"].ipus] == [(3, 0), (2, 1), (1, 2), (0, 3)]
    create(state, explicit(*(PlacedIpu(0, 0, 4 + id, id) for id in range(4)), id="q"))
    assert [(ipu.topology_id, ipu.routing_id) for ipu in state.partitions["q"].ipus] == [(4, 0), (5, 1), (6, 2), (7, 3)]


def test_segments_follow_from_the_list() -> None:
    state = pod(8, ilds=4)
    create(state, explicit(*listed(*range(4, 8), ild=2), *listed(*range(4, 8), ild=1)))
    made = state.partitions["p"]
    assert made.num_segments == 2
    assert [(ipu.ild, ipu.ild_routing_id) for ipu in made.ipus[::4]] == [(1, 0), (2, 1)]
    # The caller chooses the order of segments.
    ipus = [PlacedIpu(ild, 1 - ild, id, id) for ild in (0, 1) for id in range(4)]
    create(state, explicit(*ipus, id="q", num_segments=2))
    assert [(ipu.ild, ipu.ild_routing_id) for ipu in state.partitions["q"].ipus[::4]] == [(1, 0), (0, 1)]


@pytest.mark.parametrize(
    ("ipus", "reason"),
    [
        (listed(0, 1, 2), "power of two"),
        (listed(1, 2), "two IPUs must be IPU 0 and 1, or 2 and 3, of one IPU-Machine"),
        (listed(3, 4), "two IPUs must be"),
        (listed(0, 2), "two IPUs must be"),
        (listed(2, 3, 4, 5), "whole, consecutive IPU-Machines"),
        (listed(0, 1, 2, 3, 8, 9, 10, 11), "whole, consecutive IPU-Machines"),
        (listed(0, 1, 2, 2), "IPU 2 of IPU-Link domain 0 is listed twice, at 2 and 3"),
        (listed(16), "IPU 16 of IPU-Link domain 0 (index 0 of the list) is not in cluster 'cl0'"),
        (listed(2**32 - 1), "is not in cluster"),
        (listed(-1), "is not in cluster"),
        (listed(0, ild=2), "is not in cluster"),
        (listed(0, ild=-1), "is not in cluster"),
        (listed(0) + listed(0, ild=1), "or several segments, it must use whole"),
        (listed(*range(4)) + listed(*range(4, 8), ild=1), "not at the same positions of all its IPU-Link domains"),
        (tuple(PlacedIpu(0, 0, n, (0, 1, 1, 2)[n]) for n in range(4)), "must be 0 to 3, one for each IPU"),
        (tuple(PlacedIpu(0, 0, n, n + 1) for n in range(4)), "must be 0 to 3, one for each IPU"),
        (tuple(PlacedIpu(0, 1, n, n) for n in range(4)), "routing ids of its IPU-Link domains must be 0 to 0"),
        ((PlacedIpu(0, 0, 0, 5),), "must be 0 to 0, one for each IPU"),
    ],
)
def test_invalid_lists(ipus: tuple[PlacedIpu, ...], reason: str) -> None:
    state = pod(8, ilds=2)
    code, message = rejected(state, explicit(*ipus))
    assert (code, reason in message) == (Code.INVALID_ARGUMENT, True), message


# Parameters exist as long as the session, so the test makes these lists itself.
@pytest.mark.parametrize(
    ("length", "reason"),
    [(1_000_000, "power of two"), (2**20, "lists 1048576 IPUs, but cluster 'cl0' has only 32")],
)
def test_invalid_long_lists(length: int, reason: str) -> None:
    test_invalid_lists(listed(*range(length)), reason)


def test_domains_are_consecutive() -> None:
    ipus = listed(*range(8)) + listed(*range(8), ild=2)
    assert "domains are not consecutive" in rejected(pod(6, ilds=3), explicit(*ipus))[1]


def test_contradictions_with_other_fields() -> None:
    state = pod(4, allocations={"a1": 2, "a2": 1})
    partition(state, "other", 1)  # IPU 0 of ag01
    for spec, code, reason in (
        (PartitionSpec("p", 0, "a1", ipus=listed(1)), Code.INVALID_ARGUMENT, "a list of IPUs needs a cluster"),
        (PartitionSpec("p", 0, cluster="cl9", ipus=listed(1)), Code.NOT_FOUND, "cluster 'cl9' does not exist"),
        (explicit(*listed(4), size=2), Code.INVALID_ARGUMENT, "lists 1 IPUs, but its size is 2"),
        (explicit(*listed(4), num_segments=2), Code.INVALID_ARGUMENT, "its number of segments is 2, but"),
        (explicit(*listed(0)), Code.FAILED_PRECONDITION, "IPU 0 of agent 'ag01' is in partition 'other'"),
        (explicit(*listed(4), allocation="a2"), Code.FAILED_PRECONDITION, "not all of its IPUs are in allocation 'a2'"),
        (explicit(*listed(*range(4, 12))), Code.FAILED_PRECONDITION, "allocations 'a1' and 'a2'. Only one is allowed"),
        (explicit(*listed(12)), Code.NOT_FOUND, "agent 'ag04' is in no allocation that you may use"),
    ):
        actual, message = rejected(state, spec)
        assert (actual, reason in message) == (code, True), message
    tenant = Context(allowed=frozenset({"a1"}))
    assert rejected(state, explicit(*listed(8)), tenant)[0] is Code.NOT_FOUND
    create(state, explicit(*listed(4)), tenant)


@pytest.mark.parametrize(
    "ipus", [listed(8), listed(12), listed(16), listed(0, ild=1), listed(2**32 - 1), listed(-1), listed(-1, ild=-1)]
)
def test_users_cannot_distinguish_foreign_from_missing_ipus(ipus: tuple[PlacedIpu, ...]) -> None:
    state = pod(4, allocations={"a1": 2, "a2": 1})
    tenant = Context(allowed=frozenset({"a1"}))
    number, ild = ipus[0].topology_id, ipus[0].ild
    code, message = rejected(state, explicit(*listed(0), *ipus), tenant)
    reason = f"IPU {number} of IPU-Link domain {ild} (index 1 of the list) is in no allocation that you may use"
    assert (code, message) == (Code.NOT_FOUND, f"Cannot create partition 'p': {reason}. Choose another.")


def test_users_learn_nothing_about_clusters_without_an_allocation() -> None:
    state = pod(4, allocations={"a1": 2})
    repeated = explicit(*listed(*[0] * 64))
    assert "is listed twice" in rejected(state, repeated, Context(allowed=frozenset({"a1"})))[1]
    stranger = Context(allowed=frozenset())
    for spec in (explicit(*listed(0)), repeated, replace(explicit(*listed(0)), cluster="cl9")):
        code, message = rejected(state, spec, stranger)
        reason = f"cluster '{spec.cluster}' does not exist, or you may not use it. Check the id"
        assert (code, message) == (Code.NOT_FOUND, f"Cannot create partition 'p': {reason}.")


def test_listed_machines_may_be_down() -> None:
    state = pod(2)
    create(state, explicit(*listed(0, 1)), Context(unavailable=frozenset(names(1))))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_accepted_list_gives_a_valid_partition(data: st.DataObject) -> None:
    state = pod(4, ilds=2, allocations={"a1": 3})
    partition(state, "other", 2)
    number = st.one_of(st.integers(0, 8), st.sampled_from([2**32 - 1]))
    ipus = data.draw(st.lists(st.builds(PlacedIpu, st.integers(0, 2), number, number, number), min_size=1, max_size=9))
    outcome = _create(state, explicit(*ipus))
    if outcome is not None:
        assert {(ipu.ild, ipu.topology_id) for ipu in ipus} == {(ipu.ild, ipu.topology_id) for ipu in outcome}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.booleans(), st.randoms(use_true_random=False), st.data())
def test_a_listed_partition_equals_its_original(size: int, numbered: bool, random: object, data: st.DataObject) -> None:
    state = pod(4, ilds=2)
    segments = data.draw(st.sampled_from([1, 2])) if size == 8 else 1
    model = partition(state, "p", size, num_segments=segments)
    ipus = list(model.ipus if numbered else (replace(i, routing_id=0, ild_routing_id=0) for i in model.ipus))
    random.shuffle(ipus)  # type: ignore[attr-defined]
    copy = pod(4, ilds=2)
    create(copy, explicit(*ipus))
    assert copy.partitions["p"] == model


def _create(state: State, spec: PartitionSpec) -> tuple[PlacedIpu, ...] | None:
    try:
        changes = rules.create(state, spec, Context())
    except rules.RuleError:
        return None
    state.apply(changes)
    assert violations(state) == []
    return state.partitions[spec.id].ipus
