# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules for creating and changing agents, clusters, allocations and users."""

from dataclasses import replace

import pytest

from openipu.vipu.domain.context import ALL_ALLOCATIONS
from openipu.vipu.domain.model import Agent, Cluster, GwTopology, Kind, PlacedIpu, Role, Topology
from openipu.vipu.domain.rules import Code, Context
from openipu.vipu.domain.specs import AllocationSpec, Outcome, PartitionSpec, Spec, UserSpec
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import (
    agents,
    create,
    names,
    partition,
    pod,
    rejected,
    rejected_change,
    remove,
    upsert,
    user,
)


@pytest.mark.parametrize("id", ["2xPOD64", "c64_1-16", "ag.13.01", "10.1.2.10-8080", "_", "a" * 63, "a..b"])
def test_common_ids_are_valid(id: str) -> None:
    create(State(), Agent(id, "localhost"))


@pytest.mark.parametrize(
    "id", ["", ".", "..", "../x", "a/b", "a\0", "a b", "-a", ".a", "é", "a\n", "a" * 64, "x" * 10_000, "١"]
)
@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.REVOKED_KEY])
def test_other_ids_are_rejected(id: str, kind: Kind) -> None:
    specs: dict[Kind, Spec] = {
        Kind.AGENT: Agent(id, "localhost"),
        Kind.CLUSTER: Cluster(id, ("ag01",)),
        Kind.ALLOCATION: AllocationSpec(id, "cl0", 1),
        Kind.PARTITION: PartitionSpec(id, 1, "a1"),
        Kind.USER: user(id),
    }
    code, message = rejected(State(), specs[kind])
    assert code is Code.INVALID_ARGUMENT
    assert "1 to 63 letters" in message
    assert message.isprintable()


@pytest.mark.parametrize(
    "host", ["127.2.1.1", "ag01", "ag01.rack1.example.org", "Rack_1-ag", "fe80::1", "2001:DB8::1", "a" * 63]
)
def test_hosts_are_addresses_or_names(host: str) -> None:
    create(State(), Agent("ag01", host))


@pytest.mark.parametrize(
    "host",
    [
        "",
        "http://ag01",
        "ag01:8080",
        "[::1]",
        "::1%lo",
        "0:0::1",
        "256.1.1.1",
        "10.1.2",
        "10.01.2.3",
        "a b",
        "-a",
        "a-",
        "a..b",
        "a.",
        "é",
        "a\0",
        "a" * 64,
        ".".join(["a" * 60] * 5),
        ":" * 1_000_000,
        "a." * 500_000,
    ],
)
def test_other_hosts_are_rejected(host: str) -> None:
    code, message = rejected(State(), Agent("ag01", host))
    assert code is Code.INVALID_ARGUMENT
    assert message.startswith("Cannot create agent 'ag01': ")


@pytest.mark.parametrize("port", [-1, 0, 65536, 2**32])
def test_ports_are_bounded(port: int) -> None:
    assert rejected(State(), Agent("ag01", "h", port))[0] is Code.INVALID_ARGUMENT


def test_agents_do_not_share_an_endpoint() -> None:
    state = State()
    create(state, Agent("ag01", "Host", 8080))
    assert rejected(state, Agent("ag02", "hOST", 8080)) == (
        Code.ALREADY_EXISTS,
        "Cannot create agent 'ag02': agent 'ag01' already uses hOST:8080.",
    )
    create(state, Agent("ag02", "host", 8081))
    assert rejected_change(state, Agent("ag02", "host", 8080))[0] is Code.ALREADY_EXISTS


def test_an_agent_may_move_even_under_a_partition() -> None:
    state = pod(4)
    partition(state, "p1", 16)
    assert upsert(state, Agent("ag01", "10.1.2.1")) is Outcome.UNCHANGED
    assert upsert(state, Agent("ag01", "10.1.2.99", 8081)) is Outcome.CHANGED
    create(state, Agent("ag05", "10.1.2.1"))  # the endpoint that it left


def test_an_agent_that_is_up_keeps_its_endpoint_in_any_case_of_letters() -> None:
    state = State()
    up = Context(is_up=lambda id: True)
    for spec in (Agent("ag01", "host"), Cluster("cl0", ("ag01",)), AllocationSpec("a1", "cl0", 1)):
        create(state, spec)
    partition(state, "p1", 4)
    assert upsert(state, Agent("ag01", "HOST"), up) is Outcome.CHANGED
    assert rejected_change(state, Agent("ag01", "host2"), up)[0] is Code.FAILED_PRECONDITION


def test_create_rejects_what_exists() -> None:
    state = pod(2)
    create(state, user("alice"))
    for spec in (
        state.agents["ag01"],
        state.clusters["cl0"],
        AllocationSpec("a1", "cl0", 2),
        user("alice"),
    ):
        code, message = rejected(state, spec)
        assert code is Code.ALREADY_EXISTS
        article = "an" if spec.kind in (Kind.AGENT, Kind.ALLOCATION) else "a"
        reason = f"{article} {spec.kind} with this id already exists"
        assert message == f"Cannot create {spec.kind} {spec.id!r}: {reason}. Choose another id."


def test_clusters_take_existing_free_agents() -> None:
    state = pod(4)
    assert rejected(state, Cluster("c", ("ag09",))) == (
        Code.NOT_FOUND,
        "Cannot create cluster 'c': agent 'ag09' does not exist.",
    )
    assert rejected(state, Cluster("c", ("ag01",))) == (
        Code.FAILED_PRECONDITION,
        "Cannot create cluster 'c': agent 'ag01' is already in cluster 'cl0'. Choose another.",
    )


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        (Cluster("c", ()), "needs at least one agent"),
        (Cluster("c", ("ag01", "ag02", "ag01")), "agent 'ag01' is listed twice, at 0 and 2"),
        (Cluster("c", names(1, 2, 3), 2), "3 agents cannot be divided evenly into 2"),
        (Cluster("c", names(1, 2, 3), 0), "cannot be divided evenly into 0"),
        (Cluster("c", names(1, 2, 3), -1), "cannot be divided evenly into -1"),
        (Cluster("c", names(1), 2**32), "at most 64 IPU-Link domains"),
        (Cluster("c", names(1), topology="star"), "the IPU-Link topology must be 'mesh' or 'torus', not 'star'"),  # type: ignore[arg-type]
        (Cluster("c", names(1), gw_topology="star"), "the GW-Link topology must be 'looped', not 'star'"),  # type: ignore[arg-type]
    ],
)
def test_invalid_clusters(cluster: Cluster, reason: str) -> None:
    state = State()
    for agent in agents(3):
        create(state, agent)
    code, message = rejected(state, cluster)
    assert code is Code.INVALID_ARGUMENT
    assert reason in message


def test_a_cluster_of_a_million_agents() -> None:
    test_invalid_clusters(Cluster("c", tuple(f"ag{n}" for n in range(1_000_000))), "at most 1024")


@pytest.mark.parametrize(("machines", "ilds"), [(1, 1), (3, 3), (8, 2), (8, 1)])
def test_valid_clusters(machines: int, ilds: int) -> None:
    for topology in Topology:
        assert pod(machines, ilds=ilds, topology=topology).clusters["cl0"].machines_per_ild == machines // ilds


def test_a_cluster_changes_while_no_partition_is_in_it() -> None:
    state = pod(4, allocations={"a1": 2})
    cluster = state.clusters["cl0"]
    assert upsert(state, cluster) is Outcome.UNCHANGED
    assert upsert(state, replace(cluster, topology=Topology.MESH, num_ilds=2)) is Outcome.CHANGED
    assert upsert(state, replace(cluster, agents=names(4, 1, 2))) is Outcome.CHANGED
    assert upsert(state, replace(cluster, agents=names(1, 2, 3, 4))) is Outcome.CHANGED
    for lost in (names(1, 3, 2), names(1, 3, 4), names(2, 1, 3, 4)):
        assert rejected_change(state, replace(cluster, agents=lost)) == (
            Code.FAILED_PRECONDITION,
            "Cannot change cluster 'cl0': the agents of allocation 'a1' would no longer be consecutive. "
            "Remove the allocation first.",
        )
    partition(state, "p1", 4)
    assert upsert(state, state.clusters["cl0"]) is Outcome.UNCHANGED
    assert rejected_change(state, replace(cluster, num_ilds=2)) == (
        Code.FAILED_PRECONDITION,
        "Cannot change cluster 'cl0': partition 'p1' is in it. Remove the partition first.",
    )


def test_agents_leave_and_join_a_cluster() -> None:
    state = pod(4, allocations={})
    cluster = state.clusters["cl0"]
    assert upsert(state, replace(cluster, agents=names(1, 2))) is Outcome.CHANGED
    create(state, Cluster("cl1", names(3, 4), gw_topology=GwTopology.LOOPED))
    assert rejected_change(state, cluster)[0] is Code.FAILED_PRECONDITION


def test_allocations_by_size_take_the_smallest_free_run() -> None:
    state = pod(8, allocations={"a1": 2, "a2": 1, "a3": 3})
    assert [state.allocations[id].agents for id in ("a1", "a2", "a3")] == [names(1, 2), names(3), names(4, 5, 6)]
    # Free: two machines at the top, and those of the removed allocation.
    remove(state, Kind.ALLOCATION, "a2")
    create(state, AllocationSpec("a4", "cl0", 1))
    assert state.allocations["a4"].agents == names(3)
    assert rejected(state, AllocationSpec("a5", "cl0", 3)) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot create allocation 'a5': cluster 'cl0' has 2 free IPU-Machines, at most 2 of them consecutive.",
    )
    create(state, AllocationSpec("a5", "cl0", 2))
    assert rejected(state, AllocationSpec("a6", "cl0", 1))[0] is Code.RESOURCE_EXHAUSTED


def test_allocations_by_size_avoid_borders_of_domains() -> None:
    state = pod(8, ilds=2, allocations={"a1": 1, "a2": 2})
    assert state.allocations["a2"].agents == names(2, 3)  # not across the border after ag04
    create(state, AllocationSpec("a3", "cl0", 2))
    assert state.allocations["a3"].agents == names(5, 6)
    create(state, AllocationSpec("a4", "cl0", 2))
    assert state.allocations["a4"].agents == names(7, 8)
    state = pod(8, ilds=2, allocations={"a1": 1, "a2": 4})
    assert state.allocations["a2"].agents == names(5, 6, 7, 8)
    state = pod(12, ilds=3, allocations={"a1": 1, "a2": 8})
    assert state.allocations["a2"].agents == names(5, 6, 7, 8, 9, 10, 11, 12)
    state = pod(8, ilds=2, allocations={"a1": 1, "a2": 6})  # only across the border
    assert state.allocations["a2"].agents == names(3, 4, 5, 6, 7, 8)


def test_allocations_of_listed_agents() -> None:
    state = pod(6, ilds=2, allocations={"a1": 1})
    create(state, AllocationSpec("a2", "cl0", agents=names(3, 4)))  # across the border
    for id, listed, code, reason in (
        ("a3", names(5, 5), Code.INVALID_ARGUMENT, "agent 'ag05' is listed twice, at 0 and 1"),
        ("a3", names(6, 5), Code.INVALID_ARGUMENT, "must be consecutive in cluster 'cl0', and listed in that order"),
        ("a3", names(2, 5), Code.INVALID_ARGUMENT, "must be consecutive"),
        ("a3", names(1, 2), Code.FAILED_PRECONDITION, "agent 'ag01' is already in allocation 'a1'"),
        ("a3", names(6, 7), Code.NOT_FOUND, "agent 'ag07' does not exist"),
        ("a3", tuple(map(str, range(1_000_000))), Code.INVALID_ARGUMENT, "lists 1000000 agents"),
    ):
        actual, message = rejected(state, AllocationSpec(id, "cl0", agents=listed))
        assert (actual, reason in message) == (code, True), message
    assert rejected(state, AllocationSpec("a3", "cl0", 3, names(5, 6)))[0] is Code.INVALID_ARGUMENT
    create(state, Agent("ag07", "h"))
    assert "is not in cluster 'cl0'" in rejected(state, AllocationSpec("a3", "cl0", agents=names(7)))[1]
    create(state, AllocationSpec("a3", "cl0", 2, names(5, 6)))


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (AllocationSpec("a2", "", 1), Code.INVALID_ARGUMENT),
        (AllocationSpec("a2", "cl9", 1), Code.NOT_FOUND),
        (AllocationSpec("a2", "cl0"), Code.INVALID_ARGUMENT),
        (AllocationSpec("a2", "cl0", -1), Code.INVALID_ARGUMENT),
        (AllocationSpec("a2", "cl0", 2**32 - 1), Code.RESOURCE_EXHAUSTED),
    ],
)
def test_invalid_allocations(spec: AllocationSpec, code: Code) -> None:
    assert rejected(pod(4, allocations={"a1": 2}), spec)[0] is code


def test_an_allocation_grows_and_shrinks_around_its_partitions() -> None:
    state = pod(8, allocations={"a0": 1, "a1": 3})
    for spec in (
        AllocationSpec("a1", "cl0", 3),
        AllocationSpec("a1", ""),
        AllocationSpec("a1", "cl0", agents=names(2, 3, 4)),
    ):
        assert upsert(state, spec) is Outcome.UNCHANGED
    assert upsert(state, AllocationSpec("a1", "cl0", 7)) is Outcome.CHANGED
    assert state.allocations["a1"].agents == names(2, 3, 4, 5, 6, 7, 8)
    assert rejected_change(state, AllocationSpec("a1", "cl0", 8)) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot change allocation 'a1': it can grow to at most 7 consecutive IPU-Machines, not to 8: "
        "the adjacent IPU-Machines in cluster 'cl0' are not free.",
    )
    spec = AllocationSpec("a1", "cl0", agents=names(5, 6, 7))
    assert upsert(state, spec) is Outcome.CHANGED
    partition(state, "p1", 4)  # on ag05
    partition(state, "p2", 4)  # on ag06
    assert upsert(state, AllocationSpec("a1", "cl0", 6)) is Outcome.CHANGED  # downwards once the top is reached
    assert state.allocations["a1"].agents == names(3, 4, 5, 6, 7, 8)
    assert upsert(state, AllocationSpec("a1", "cl0", 2)) is Outcome.CHANGED
    assert state.allocations["a1"].agents == names(5, 6)
    for rejected_spec in (AllocationSpec("a1", "cl0", 1), AllocationSpec("a1", "cl0", agents=names(7, 8))):
        code, message = rejected_change(state, rejected_spec)
        assert code is Code.FAILED_PRECONDITION
        assert "partitions 'p1', 'p2' use machines" in message
    assert rejected_change(state, AllocationSpec("a1", "cl0", -1))[0] is Code.INVALID_ARGUMENT
    assert rejected_change(state, AllocationSpec("a1", "cl1", 2))[1] == (
        "Cannot change allocation 'a1': it is in cluster 'cl0'. To move it, remove it and create it again."
    )


def test_an_allocation_grows_to_the_ends_of_its_cluster() -> None:
    state = pod(4, allocations={})
    create(state, AllocationSpec("a1", "cl0", agents=names(3)))
    assert upsert(state, AllocationSpec("a1", "cl0", 4)) is Outcome.CHANGED
    assert state.allocations["a1"].agents == names(1, 2, 3, 4)
    assert rejected_change(state, AllocationSpec("a1", "cl0", 5))[0] is Code.RESOURCE_EXHAUSTED


def test_users_have_rights_to_existing_allocations() -> None:
    state = pod(4, allocations={"a1": 2, "a2": 2})
    create(state, user("root", role=Role.ADMIN))
    create(state, user("alice", "a1"))
    assert rejected(state, UserSpec("bob", Role.USER))[0] is Code.INVALID_ARGUMENT
    assert rejected(state, user("bob", "a3"))[0] is Code.NOT_FOUND
    assert rejected(state, user("bob", "a1", "a1"))[0] is Code.INVALID_ARGUMENT
    assert rejected(state, user("bob", *map(str, range(1_000_000))))[0] is Code.INVALID_ARGUMENT
    assert rejected(state, user("bob", role="root"))[0] is Code.INVALID_ARGUMENT  # type: ignore[arg-type]
    assert upsert(state, UserSpec("alice", Role.USER, ("a1",))) is Outcome.UNCHANGED
    assert upsert(state, UserSpec("alice", Role.ADMIN, ("a2", "a1"))) is Outcome.CHANGED
    assert upsert(state, UserSpec("alice", Role.ADMIN, ("a1", "a2"))) is Outcome.UNCHANGED  # a set
    assert upsert(state, replace(user("alice", "a2"), key_hash="other")) is Outcome.CHANGED
    assert state.users["alice"] == user("alice", "a2")  # with its previous key


def test_a_user_of_all_allocations_is_restricted_again() -> None:
    state = pod(4, allocations={"a1": 2, "a2": 2})
    create(state, user("alice", all_allocations=True))
    both = UserSpec("alice", Role.USER, ("a1",), all_allocations=True)
    assert rejected_change(state, both) == (
        Code.INVALID_ARGUMENT,
        "Cannot change user 'alice': it lists allocations, and also requests all of them. Choose one.",
    )
    assert upsert(state, UserSpec("alice", Role.USER, all_allocations=True)) is Outcome.UNCHANGED
    assert upsert(state, UserSpec("alice", Role.USER)) is Outcome.CHANGED
    assert state.users["alice"] == user("alice")
    assert upsert(state, UserSpec("alice", Role.USER, all_allocations=True)) is Outcome.CHANGED
    assert state.users["alice"] == user("alice", all_allocations=True)


def test_a_user_of_all_allocations_is_no_administrator() -> None:
    state = pod(4, allocations={"a1": 2})
    everywhere = Context(allowed=ALL_ALLOCATIONS)
    for spec in (Agent("ag09", "h"), Cluster("c", ("ag01",)), AllocationSpec("a2", "cl0", 1), user("bob")):
        assert rejected(state, spec, everywhere)[0] is Code.PERMISSION_DENIED
    outside = PartitionSpec("p1", 4, cluster="cl0", ipus=tuple(PlacedIpu(0, 0, 8 + n, 0) for n in range(4)))
    assert rejected(state, outside, everywhere) == (
        Code.NOT_FOUND,
        "Cannot create partition 'p1': IPU 8 of IPU-Link domain 0 (index 0 of the list) is in no allocation that you "
        "may use. Choose another.",
    )
    create(state, PartitionSpec("p1", 4), everywhere)
    assert state.partitions["p1"].allocation == "a1"


def test_the_last_administrator_keeps_its_role() -> None:
    state = pod(4, allocations={"a1": 2})
    create(state, user("root", role=Role.ADMIN))
    create(state, user("alice"))
    assert rejected_change(state, UserSpec("root", Role.USER)) == (
        Code.FAILED_PRECONDITION,
        "Cannot change user 'root': it is the last administrator. Make another user administrator first.",
    )
    assert upsert(state, UserSpec("root", Role.ADMIN, ("a1",))) is Outcome.CHANGED
    assert upsert(state, UserSpec("alice", Role.ADMIN)) is Outcome.CHANGED
    assert upsert(state, UserSpec("root", Role.USER)) is Outcome.CHANGED


def test_only_administrators_manage_objects_other_than_partitions() -> None:
    state = pod(2)
    restricted = Context(allowed=frozenset({"a1"}))
    for spec in (Agent("ag09", "h"), Cluster("c", ("ag01",)), AllocationSpec("a2", "cl0", 1), user("bob")):
        assert rejected(state, spec, restricted)[0] is Code.PERMISSION_DENIED
