# SPDX-License-Identifier: GPL-3.0-or-later
"""Small PODs for the tests of the rules."""

from collections.abc import Callable

import pytest

from openipu.vipu.domain import rules
from openipu.vipu.domain.invariants import violations
from openipu.vipu.domain.model import Agent, Change, Cluster, Kind, Partition, Role, Topology, User
from openipu.vipu.domain.rules import Code, Context, RuleError
from openipu.vipu.domain.specs import AllocationSpec, Outcome, PartitionSpec, Removal, Spec
from openipu.vipu.domain.state import State

UNRESTRICTED = Context()


def agents(count: int, prefix: str = "ag") -> tuple[Agent, ...]:
    return tuple(Agent(f"{prefix}{n:02}", f"10.1.{2 + n // 250}.{n % 250}") for n in range(1, count + 1))


def pod(
    machines: int = 8,
    *,
    ilds: int = 1,
    topology: Topology = Topology.TORUS,
    allocations: dict[str, int] | None = None,
) -> State:
    """Return a state with agents ag01…, cluster cl0, and allocations of these sizes (default: a1, all machines)."""
    state = State()
    specs: list[Spec] = [*agents(machines)]
    specs.append(Cluster("cl0", tuple(agent.id for agent in agents(machines)), ilds, topology))
    sizes = {"a1": machines} if allocations is None else allocations
    specs += [AllocationSpec(id, "cl0", size) for id, size in sizes.items()]
    for spec in specs:
        create(state, spec)
    return state


def create(state: State, spec: Spec, context: Context = UNRESTRICTED) -> None:
    state.apply(rules.create(state, spec, context))
    assert violations(state) == []


def upsert(state: State, spec: Spec, context: Context = UNRESTRICTED) -> Outcome:
    outcome, changes = rules.upsert(state, spec, context)
    assert (outcome is Outcome.UNCHANGED) == (not changes)
    state.apply(changes)
    assert violations(state) == []
    return outcome


def remove(state: State, kind: Kind, id: str, force: bool = False, context: Context = UNRESTRICTED) -> list[Change]:
    changes = rules.remove(state, Removal(kind, id, force), context)
    state.apply(changes)
    assert violations(state) == []
    return changes


def partition(state: State, id: str, size: int, allocation: str = "a1", **fields: object) -> Partition:
    create(state, PartitionSpec(id, size, allocation, **fields))  # type: ignore[arg-type]
    return state.partitions[id]


def user(id: str, *allocations: str, role: Role = Role.USER, **fields: bool) -> User:
    return User(id, role, allocations, "hash", "salt", **fields)


def rejection(act: Callable[[], object]) -> tuple[Code, str]:
    """Return the code and the message of a rejection."""
    with pytest.raises(RuleError) as caught:
        act()
    assert caught.value.message.endswith(".")
    assert len(caught.value.message) < 500
    return caught.value.code, caught.value.message


def rejected(state: State, spec: Spec, context: Context = UNRESTRICTED) -> tuple[Code, str]:
    """Return the code and the message of a rejected create. An upsert of a new id must fail with the same message."""
    result = rejection(lambda: rules.create(state, spec, context))
    if spec.id not in state.table(spec.kind):
        assert rejection(lambda: rules.upsert(state, spec, context)) == result
    return result


def rejected_change(state: State, spec: Spec, context: Context = UNRESTRICTED) -> tuple[Code, str]:
    return rejection(lambda: rules.upsert(state, spec, context))


def machines(state: State, id: str) -> list[tuple[str, int]]:
    """Return the agents and IPUs of a partition, in order of routing id."""
    return list(state.machines_of(state.partitions[id]))


def names(*numbers: int) -> tuple[str, ...]:
    return tuple(f"ag{n:02}" for n in numbers)
