# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines out of service, and their drain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openipu.vipu.domain import partition_state, rules, service
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.history import changed_objects
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import Agent, Cluster, Kind, Operation, PlacedIpu, Put, ReadyState
from openipu.vipu.domain.rules import Code, RuleError
from openipu.vipu.domain.specs import AgentSpec, Outcome, PartitionSpec
from openipu.vipu.domain.state import State
from tests.unit.vipu.domain.rules_support import (
    UNRESTRICTED,
    create,
    machines,
    partition,
    pod,
    rejected,
    rejected_change,
    rejection,
    upsert,
    user,
)


def retire(state: State, *ids: str) -> State:
    for id in ids:
        state.apply(service.set_service(state, id, True, "fan"))
    return state


def agents_of(state: State, id: str) -> set[str]:
    return {agent for agent, _ in machines(state, id)}


def set_operation(state: State, id: str, operation: Operation) -> None:
    ready = ReadyState.ERROR if operation is Operation.FAILED else ReadyState.ACTIVE
    state.apply([Put(replace(state.partitions[id], ready=ready, operation=operation))])


def test_changes_are_idempotent() -> None:
    state = pod(2)
    assert service.set_service(state, "ag01", False, "") == []
    retire(state, "ag01")
    assert state.agents["ag01"] == Agent("ag01", "10.1.2.1", out_of_service=True, service_reason="fan")
    for reason in ("", "fan"):
        assert service.set_service(state, "ag01", True, reason) == []
    assert service.set_service(state, "ag01", None, "") == []
    (put,) = service.set_service(state, "ag01", None, "pump")
    assert put == Put(replace(state.agents["ag01"], service_reason="pump"))
    state.apply(service.set_service(state, "ag01", False, ""))
    assert state == pod(2)


@pytest.mark.parametrize(
    ("id", "out", "reason", "message"),
    [
        ("x", True, "", "Cannot change agent 'x': agent 'x' does not exist."),
        ("ag01", False, "fan", "a reason is for an agent that is out of service. Omit the reason."),
        ("ag01", None, "fan", "a reason is for an agent that is out of service. Omit the reason."),
        ("ag01", True, "a\nb", "the reason must be one line of at most 200 printable characters."),
        ("ag01", True, "a" * 201, "the reason must be one line of at most 200 printable characters."),
    ],
)
def test_invalid_changes(id: str, out: bool | None, reason: str, message: str) -> None:
    assert message in rejection(lambda: service.set_service(pod(1), id, out, reason))[1]


def test_a_specification_without_the_state_keeps_it() -> None:
    state = retire(pod(2), "ag01")
    assert upsert(state, AgentSpec("ag01", "10.1.2.1")) is Outcome.UNCHANGED
    assert upsert(state, AgentSpec("ag01", "10.9.9.9", 81)) is Outcome.CHANGED
    assert state.agents["ag01"] == Agent("ag01", "10.9.9.9", 81, out_of_service=True, service_reason="fan")
    assert upsert(state, AgentSpec("ag01", "10.9.9.9", 81, False)) is Outcome.CHANGED
    assert upsert(state, AgentSpec("ag03", "10.1.2.3", out_of_service=True)) is Outcome.CREATED
    assert state.out_of_service == {"ag03"}
    assert "Omit the reason" in rejected_change(state, AgentSpec("ag01", "10.9.9.9", 81, service_reason="fan"))[1]


def test_nothing_is_placed_there_and_partitions_stay() -> None:
    state = pod(3)
    partition(state, "old", 4)
    retire(state, "ag01")
    assert (agents_of(state, "old"), violations(state)) == ({"ag01"}, [])
    create(state, PartitionSpec("p1", 4, "a1"))
    create(state, PartitionSpec("p2", 4, "a1"))
    assert agents_of(state, "p1") | agents_of(state, "p2") == {"ag02", "ag03"}
    state.apply(rules.remove(state, rules.Removal(Kind.PARTITION, "old"), UNRESTRICTED))
    assert rejected(state, PartitionSpec("p3", 4, "a1")) == (
        Code.RESOURCE_EXHAUSTED,
        "Cannot create partition 'p3': allocation 'a1' has no free IPUs. A block that would fit is on 'ag01', which is "
        "out of service.",
    )
    assert rules.fits(state, "a1", 1, UNRESTRICTED) == 0
    assert rules.free_summary(state, "a1") == (0, [], 0)
    state.apply(service.set_service(state, "ag01", False, ""))
    create(state, PartitionSpec("p3", 4, "a1"))


def test_its_ipus_cannot_be_listed() -> None:
    state = retire(pod(2), "ag01")
    spec = PartitionSpec("p", 4, cluster="cl0", ipus=tuple(PlacedIpu(0, 0, number, 0) for number in range(4)))
    assert rejected(state, spec) == (
        Code.FAILED_PRECONDITION,
        "Cannot create partition 'p': agent 'ag01' is out of service. Choose IPUs of other agents, or ask an "
        "administrator.",
    )
    create(state, replace(spec, ipus=tuple(PlacedIpu(0, 0, number, 0) for number in range(4, 8))))


def test_moves_avoid_it() -> None:
    state = pod(3)
    moving = partition(state, "p", 4)
    retire(state, "ag01", "ag02")
    ipus = partition_state.find_relocation(state, moving, frozenset(), {})
    assert ipus is not None
    assert {ipu.position(3) for ipu in ipus} == {2}
    assert partition_state.find_relocation(state, moving, frozenset({"ag03"}), {}) is None


def test_watchers_see_the_agent_and_the_free_ipus_of_its_allocation() -> None:
    old = pod(2)
    new = retire(old.copy(), "ag01")
    put = Put(new.agents["ag01"])
    assert changed_objects(old, new, [put]) == {(Kind.AGENT, "ag01"): (), (Kind.ALLOCATION, "a1"): ("a1",)}
    other = Put(replace(new.agents["ag01"], service_reason="pump"))
    newest = new.copy()
    newest.apply([other])
    assert changed_objects(new, newest, [other]) == {(Kind.AGENT, "ag01"): ()}


def drained(state: State, *, force: bool = False, context: Context = UNRESTRICTED) -> dict[str, str]:
    """Drain ag01, and return why each partition stays, or its new agents."""
    before = state.copy()
    changes, items = service.drain(state, "ag01", "fan", context, force=force)
    assert state == before
    state.apply(changes)
    assert violations(state) == []
    assert [item.id for item in items] == sorted(item.id for item in items)
    return {item.id: item.reason or ",".join(item.agents) for item in items}


def test_a_drain_moves_failed_relocatable_partitions() -> None:
    state = pod(4)
    for id, relocatable in (("failed", True), ("fixed", False)):
        partition(state, id, 2, relocatable=relocatable)
        set_operation(state, id, Operation.FAILED)
    assert drained(state) == {"failed": "ag02", "fixed": "it is not relocatable"}
    assert state.agents["ag01"].service_reason == "fan"
    assert state.partitions["failed"].operation is Operation.RESETTING
    assert service.drain(state, "ag01", "", UNRESTRICTED, force=True)[0] == []


def test_only_force_moves_partitions_that_may_have_a_job() -> None:
    state = pod(4)
    for id, operation in (("idle", Operation.IDLE), ("lost", Operation.UNREACHABLE)):
        partition(state, id, 2, relocatable=True)
        set_operation(state, id, operation)
    may = "a job may use it. Its users can move it with a reset, or use force"
    assert drained(state) == {"idle": may, "lost": may}
    assert state.partitions["idle"].operation is Operation.IDLE
    assert drained(state, force=True) == {"idle": "ag02", "lost": "ag02"}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Operation.CREATING, "it is being created. Drain the agent again when it is ACTIVE"),
        (Operation.RESETTING, "it is being reset. Drain the agent again when it is ACTIVE"),
        (Operation.REMOVING, "it is being removed"),
    ],
)
def test_operations_in_progress_are_not_disturbed(operation: Operation, reason: str) -> None:
    state = pod(2)
    partition(state, "p", 4, relocatable=True)
    set_operation(state, "p", operation)
    assert drained(state, force=True) == {"p": reason}


def test_a_partition_without_automatic_resets_stays() -> None:
    state = pod(2)
    partition(state, "p", 4, relocatable=True, disable_auto_reset=True)
    set_operation(state, "p", Operation.FAILED)
    assert drained(state, force=True) == {"p": "its automatic resets are disabled"}


def test_partitions_without_a_free_place_stay() -> None:
    state = pod(2)
    for id in ("p1", "p2"):
        partition(state, id, 2, relocatable=True)
        set_operation(state, id, Operation.IDLE)
    none = "its allocation has no other free place for it"
    assert drained(state.copy(), force=True, context=Context(unavailable=frozenset({"ag02"}))) == {
        "p1": none,
        "p2": none,
    }
    partition(state, "q", 2)
    partition(state, "r", 1)
    assert agents_of(state, "q") == {"ag02"}
    assert drained(state, force=True) == {"p1": none, "p2": none}


def test_the_report_names_the_users() -> None:
    state = pod(2)
    partition(state, "p", 4)
    for id in ("bob", "alice"):
        create(state, user(id, "a1"))
    (item,) = service.drain(state, "ag01", "", UNRESTRICTED, force=False)[1]
    assert (item.allocation, item.users) == ("a1", ("alice", "bob"))


def test_users_of_all_allocations_are_users_of_the_partitions() -> None:
    state = pod(2)
    partition(state, "p", 4)
    create(state, user("bob", "a1"))
    create(state, replace(user("alice"), all_allocations=True))
    create(state, user("carol"))
    (item,) = service.drain(state, "ag01", "", UNRESTRICTED, force=False)[1]
    assert item.users == ("alice", "bob")


def test_rejected_drains() -> None:
    state = pod(2)
    missing = rejection(lambda: service.drain(state, "x", "", UNRESTRICTED, force=False))
    assert missing == (Code.NOT_FOUND, "Cannot drain agent 'x': agent 'x' does not exist.")
    with pytest.raises(RuleError, match="Cannot drain agent 'ag01': a test of cluster 'cl0' is in progress"):
        service.drain(state, "ag01", "", Context(cluster_under_test="cl0"), force=False)
    spare = State()
    create(spare, Agent("ag01", "h"))
    create(spare, Cluster("cl0", ("ag01",)))
    assert drained(spare) == {}
