# SPDX-License-Identifier: GPL-3.0-or-later
"""Removals: blocking objects, forced removals, and the allocations of users."""

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.model import Cluster, Delete, Kind, Put, Role
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import AllocationSpec, PartitionSpec, Removal
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import create, names, partition, pod, rejection, remove, user


def rejected(state: State, kind: Kind, id: str, context: Context | None = None) -> tuple[Code, str]:
    return rejection(lambda: rules.remove(state, Removal(kind, id), context or Context()))


@pytest.fixture
def state() -> State:
    state = pod(8, allocations={"a1": 4, "a2": 2})
    for number in range(5):
        partition(state, f"p{number}", 1)
    partition(state, "q", 8, "a2")
    return state


def test_dependents_are_named(state: State) -> None:
    assert rejected(state, Kind.ALLOCATION, "a1") == (
        Code.FAILED_PRECONDITION,
        "Cannot remove allocation 'a1': partitions 'p0', 'p1', 'p2' and 2 more are in it. Remove the partitions first, "
        "or use force.",
    )
    assert rejected(state, Kind.ALLOCATION, "a2")[1] == (
        "Cannot remove allocation 'a2': partition 'q' is in it. Remove the partition first, or use force."
    )
    assert rejected(state, Kind.CLUSTER, "cl0")[1] == (
        "Cannot remove cluster 'cl0': allocations 'a1', 'a2' are in it. Remove the allocations first, or use force."
    )
    assert rejected(state, Kind.AGENT, "ag08")[1] == (
        "Cannot remove agent 'ag08': cluster 'cl0' contains it. Remove the cluster first, or use force."
    )


@pytest.mark.parametrize("kind", Kind)
def test_missing_objects_cannot_be_removed(state: State, kind: Kind) -> None:
    for force in (False, True):
        assert rejection(lambda force=force: rules.remove(state, Removal(kind, "x" * 9999, force), Context()))[0] is (  # type: ignore[misc]
            Code.NOT_FOUND
        )


def test_a_pod_is_removed_from_partitions_to_agents(state: State) -> None:
    create(state, user("alice", "a1"))
    for id in list(state.partitions):
        assert remove(state, Kind.PARTITION, id) == [Delete(Kind.PARTITION, id)]
    for id in ("a1", "a2"):
        remove(state, Kind.ALLOCATION, id)
    remove(state, Kind.CLUSTER, "cl0")
    for id in names(*range(1, 9)):
        remove(state, Kind.AGENT, id)
    remove(state, Kind.USER, "alice")
    assert state == State()


def test_the_last_administrator_is_not_removed_even_by_force(state: State) -> None:
    create(state, user("root", role=Role.ADMIN))
    create(state, user("alice"))
    for force in (False, True):
        with pytest.raises(rules.RuleError) as caught:
            rules.remove(state, Removal(Kind.USER, "root", force), Context())
        assert caught.value.code is Code.FAILED_PRECONDITION
        assert caught.value.message == (
            "Cannot remove user 'root': it is the last administrator. Make another user administrator first."
        )
    remove(state, Kind.USER, "alice")
    create(state, user("carol", role=Role.ADMIN))
    remove(state, Kind.USER, "root")
    assert set(state.users) == {"carol"}


def test_a_controller_without_tls_needs_no_administrator(state: State) -> None:
    """Every caller has all rights there. A secure controller gets a new one by ``--init --secure``."""
    insecure = Context(without_users=True)
    create(state, user("root", role=Role.ADMIN))
    assert rejected(state, Kind.USER, "root", insecure) == (
        Code.FAILED_PRECONDITION,
        "Cannot remove user 'root': it is the last administrator. Make another user administrator first, or use force.",
    )
    remove(state, Kind.USER, "root", force=True, context=insecure)
    assert not state.users


def test_a_removed_allocation_leaves_its_users_without_rights(state: State) -> None:
    """A user whose last allocation is removed must not become a user of all allocations."""
    create(state, user("alice", "a1"))
    create(state, user("bob", all_allocations=True))
    remove(state, Kind.ALLOCATION, "a1", force=True)
    assert state.users == {"alice": user("alice"), "bob": user("bob", all_allocations=True)}


def test_force_removes_dependents(state: State) -> None:
    down = Context(unavailable=frozenset(names(1, 2)))
    removed = remove(state, Kind.ALLOCATION, "a1", force=True, context=down)
    assert removed == [Delete(Kind.PARTITION, f"p{n}") for n in range(5)] + [Delete(Kind.ALLOCATION, "a1")]
    assert set(state.partitions) == {"q"}
    assert remove(state, Kind.AGENT, "ag08", force=True) == [
        Delete(Kind.PARTITION, "q"),
        Delete(Kind.ALLOCATION, "a2"),
        Delete(Kind.CLUSTER, "cl0"),
        Delete(Kind.AGENT, "ag08"),
    ]
    assert set(state.agents) == set(names(*range(1, 8)))
    create(state, Cluster("cl1", names(1, 2)))
    remove(state, Kind.CLUSTER, "cl1", force=True)
    remove(state, Kind.AGENT, "ag01", force=True)


def test_a_machine_that_is_down_blocks_a_removal(state: State) -> None:
    down = Context(unavailable=frozenset(names(5, 6, 7)))
    assert rejected(state, Kind.PARTITION, "q", down) == (
        Code.FAILED_PRECONDITION,
        "Cannot remove partition 'q': agents 'ag05', 'ag06' are down. Bring them up first, or use force.",
    )
    assert "agent 'ag05' is down" in rejected(state, Kind.PARTITION, "q", Context(unavailable=frozenset(names(5))))[1]
    remove(state, Kind.PARTITION, "p1", context=down)
    remove(state, Kind.PARTITION, "q", force=True, context=down)


def test_users_lose_a_removed_allocation(state: State) -> None:
    create(state, user("alice", "a1", "a2"))
    create(state, user("bob", "a2"))
    changes = remove(state, Kind.CLUSTER, "cl0", force=True)
    assert [change for change in changes if isinstance(change, Put)] == [Put(user("alice")), Put(user("bob"))]
    create(state, Cluster("cl0", names(1)))
    create(state, AllocationSpec("a1", "cl0", 1))
    assert state.users["alice"].allocations == ()


def test_callers_remove_their_own_partitions_only(state: State) -> None:
    tenant = Context(allowed=frozenset({"a1"}))
    hidden, absent = rejected(state, Kind.PARTITION, "q", tenant), rejected(state, Kind.PARTITION, "z", tenant)
    assert hidden == (absent[0], absent[1].replace("'z'", "'q'"))
    assert hidden[0] is Code.NOT_FOUND
    for kind, id in ((Kind.AGENT, "ag08"), (Kind.CLUSTER, "cl0"), (Kind.ALLOCATION, "a1"), (Kind.USER, "absent")):
        assert rejected(state, kind, id, tenant)[0] is Code.PERMISSION_DENIED
    remove(state, Kind.PARTITION, "p1", context=tenant)
    create(state, PartitionSpec("p1", 1, "a1"), tenant)
