# SPDX-License-Identifier: GPL-3.0-or-later
"""History of changes: events applied to a snapshot give the later state, for every view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openipu.vipu.domain import rules
from openipu.vipu.domain.batch import apply_batch
from openipu.vipu.domain.context import ALL_ALLOCATIONS, Context
from openipu.vipu.domain.errors import RuleError
from openipu.vipu.domain.history import (
    Changed,
    Event,
    Key,
    View,
    changed_objects,
    merge,
    rights_of,
    scopes_of,
    snapshot,
    transition,
)
from openipu.vipu.domain.model import Change, Delete, Kind, Put, ReadyState, Record, Role, User
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import create, partition, pod
from tests.unit.vipu.domain.test_rules_random import batches

ALL = View(None, frozenset(Kind))
TENANT = frozenset({Kind.ALLOCATION, Kind.PARTITION})


def listed(state: State, view: View) -> dict[Key, object]:
    """Return the objects of a view in the form of lists, with everything that depends on other records."""
    return {event.key: form(state, event.record) for event in snapshot(state, view, 0)}


def form(state: State, record: Record | None) -> object:
    assert record is not None
    free = (
        rules.free_summary(state, record.id)[:2] if record.kind is Kind.ALLOCATION else (),
        sorted(state.partitions_in.get(record.id, ())) if record.kind is Kind.ALLOCATION else (),
        sorted(state.allocations_in.get(record.id, ())) if record.kind is Kind.CLUSTER else (),
        (state.cluster_of.get(record.id), state.allocation_of.get(record.id)) if record.kind is Kind.AGENT else (),
    )
    return record, free


def apply(objects: dict[Key, object], state: State, events: Sequence[Event]) -> dict[Key, object]:
    """Return the objects of a watcher after these events."""
    result = dict(objects)
    for event in events:
        if event.record is None:
            del result[event.key]  # fails for an object that the watcher does not know
        else:
            result[event.key] = form(state, event.record)
    return result


def step(state: State, changes: Sequence[Change]) -> tuple[State, Changed]:
    new = state.copy()
    new.apply(changes)
    return new, changed_objects(state, new, changes)


filters = st.builds(
    lambda kinds, ids: (frozenset(kinds), frozenset(ids)),
    st.one_of(st.just(list(Kind)), st.lists(st.sampled_from(Kind), min_size=1)),
    st.one_of(st.just([]), st.lists(st.sampled_from(["a0", "a1", "p0", "p1", "c0", "ag1", "u0"]))),
)


@settings(max_examples=300)
@given(st.lists(batches, min_size=1, max_size=12), filters, st.data())
def test_events_applied_to_a_snapshot_give_the_list(histories: list, chosen: tuple, data: st.DataObject) -> None:
    kinds, ids = chosen
    state = State()
    past: list[tuple[State, Changed]] = [(state, {})]
    for batch in histories:
        try:
            changes = apply_batch(state, batch, Context()).changes
        except RuleError:
            continue
        state, changed = step(state, changes)
        past.append((state, changed))
    start = data.draw(st.integers(0, len(past) - 1))
    merged = merge((n, changed) for n, (_, changed) in enumerate(past) if n > start)
    old = past[start][0]
    for allowed_before, allowed_after in (
        (None, None),
        (frozenset({"a0"}), frozenset({"a0"})),
        (frozenset({"a0"}), frozenset({"a1"})),
        (frozenset({"a0", "a1"}), frozenset({"a0"})),
        (ALL_ALLOCATIONS, ALL_ALLOCATIONS),
        (frozenset({"a0"}), ALL_ALLOCATIONS),
        (ALL_ALLOCATIONS, frozenset({"a1"})),
        (ALL_ALLOCATIONS, frozenset()),
    ):
        served = kinds if allowed_before is None else kinds & TENANT  # as the services for users do
        before, after = View(allowed_before, served, ids), View(allowed_after, served, ids)
        events = transition(state, merged, before, after, len(past))
        assert apply(listed(old, before), state, events) == listed(state, after)
        assert all(start < event.revision <= len(past) for event in events)


def test_a_partition_changes_the_list_form_of_its_allocation_only_when_it_takes_or_frees_ipus() -> None:
    state = pod(2)
    changes = rules.create(state, PartitionSpec("p1", 1, "a1"), Context())
    state, changed = step(state, changes)
    assert changed == {(Kind.PARTITION, "p1"): None, (Kind.ALLOCATION, "a1"): ("a1",)}
    active = replace(state.partitions["p1"], ready=ReadyState.ACTIVE)
    state, changed = step(state, [Put(active)])
    assert changed == {(Kind.PARTITION, "p1"): ("a1",)}


def test_objects_created_and_removed_in_one_transaction_are_not_events() -> None:
    state = pod(1)
    created = rules.create(state, PartitionSpec("p1", 1, "a1"), Context())
    _, changed = step(state, [*created, Delete(Kind.PARTITION, "p1")])
    assert (Kind.PARTITION, "p1") not in changed


def test_a_partition_that_moves_to_another_tenant_is_removed_from_the_view_of_the_first() -> None:
    old = pod(2, allocations={"a1": 1, "a2": 1})
    partition(old, "p1", 1, "a1")
    new = old.copy()
    new.apply([Delete(Kind.PARTITION, "p1")])
    create(new, PartitionSpec("p1", 1, "a2"))
    merged = merge([(1, changed_objects(old, new, [Delete(Kind.PARTITION, "p1"), Put(new.partitions["p1"])]))])
    first, second = View(frozenset({"a1"}), TENANT), View(frozenset({"a2"}), TENANT)
    assert transition(new, merged, first, first, 1)[0] == Event((Kind.PARTITION, "p1"), None, 1)
    assert Event((Kind.PARTITION, "p1"), new.partitions["p1"], 1) in transition(new, merged, second, second, 1)


def test_removals_of_foreign_objects_are_invisible() -> None:
    old = pod(2, allocations={"a1": 1, "a2": 1})
    partition(old, "p2", 1, "a2")
    new, changed = step(old, [Delete(Kind.PARTITION, "p2")])
    view = View(frozenset({"a1"}), TENANT)
    assert transition(new, merge([(1, changed)]), view, view, 1) == []


def test_objects_created_after_the_loss_of_a_right_are_invisible() -> None:
    old = pod(2, allocations={"a1": 1, "a2": 1})
    new, changed = step(old, rules.create(old, PartitionSpec("p2", 1, "a2"), Context()))
    before, after = View(frozenset({"a1", "a2"}), TENANT), View(frozenset({"a1"}), TENANT)
    events = transition(new, merge([(1, changed)]), before, after, 2)
    assert [(event.key, event.record) for event in events] == [((Kind.ALLOCATION, "a2"), None)]


@pytest.mark.parametrize(
    ("user", "scopes", "rights"),
    [
        (User("u", Role.ADMIN, ("a1",), "", ""), ("*",), None),
        (User("u", Role.ADMIN, (), "", "", all_allocations=True), ("*",), None),
        (User("u", Role.USER, ("a1",), "", ""), ("a1",), frozenset({"a1"})),
        (User("u", Role.USER, (), "", ""), (), frozenset()),
        (User("u", Role.USER, (), "", "", all_allocations=True), ("+",), ALL_ALLOCATIONS),
    ],
    ids=["administrator", "administrator of all allocations", "user", "no allocation", "all allocations"],
)
def test_the_scopes_of_a_user_contain_its_rights(user: User, scopes: tuple[str, ...], rights: object) -> None:
    assert scopes_of(user) == scopes
    assert rights_of(scopes) == rights


def test_a_user_of_all_allocations_sees_nothing_outside_of_allocations() -> None:
    state = pod(2, allocations={"a1": 1})
    view = View(ALL_ALLOCATIONS, frozenset(Kind))
    assert [event.key for event in snapshot(state, view, 1)] == [(Kind.ALLOCATION, "a1")]


def test_the_order_of_events_is_the_order_of_dependency() -> None:
    state = pod(2)
    empty = State()
    merged = merge([(1, changed_objects(empty, state, [Put(r) for kind in Kind for r in state.table(kind).values()]))])
    kinds = [event.key[0] for event in transition(state, merged, ALL, ALL, 1)]
    assert kinds == sorted(kinds, key=list(Kind).index)
    gone = merge([(2, dict.fromkeys(merged, ()))])
    kinds = [event.key[0] for event in transition(empty, gone, ALL, ALL, 2)]
    assert kinds == sorted(kinds, key=list(Kind).index, reverse=True)
