# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes along with a removed object in a forced batch."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Step, plan
from ansible_collections.openipu.pod.plugins.module_utils.vipu.resources import (
    AGENT,
    ALLOCATION,
    CLUSTER,
    FAMILIES,
    PARTITION,
    carried_along,
)
from hypothesis import given
from hypothesis import strategies as st

SEEN: dict[str, list[dict[str, Any]]] = {
    "agent": [{"id": f"ag{n}", "host": f"127.2.1.{n}", "port": 8080} for n in range(1, 5)],
    "cluster": [{"id": "cl0", "agents": ["ag1", "ag2"]}, {"id": "cl1", "agents": ["ag3", "ag4"]}],
    "allocation": [
        {"id": "a0", "cluster": "cl0", "agents": ["ag1", "ag2"]},
        {"id": "a1", "cluster": "cl1", "agents": ["ag3"]},
        {"id": "a2", "cluster": "cl1", "agents": ["ag4"]},
    ],
    "partition": [{"id": f"p{n}", "allocation": f"a{n % 3}", "size": 1} for n in range(6)],
}
GONE = (Action.DELETE, Action.RECREATE)


def steps_of(**removed: list[str]) -> list[Step]:
    """Everything wanted as it is, but for what is removed."""
    steps = []
    for family in FAMILIES[:4]:
        out = removed.get(family.kind, [])
        wanted = [item for item in SEEN[family.kind] if item["id"] not in out]
        steps += plan(family, wanted, SEEN[family.kind], absent=out)
    return steps


def actions(steps: list[Step]) -> dict[str, Action]:
    return {step.key: step.action for step in steps if step.action is not Action.NONE}


def test_nothing_removed_is_nothing_carried_along() -> None:
    assert carried_along(steps_of(), SEEN) == steps_of()


def test_a_partition_that_is_wanted_comes_back_and_another_does_not() -> None:
    steps = plan(ALLOCATION, [], SEEN["allocation"], absent=["a1"])
    steps += plan(PARTITION, [SEEN["partition"][1]], SEEN["partition"])
    assert actions(carried_along(steps, SEEN)) == {"a1": Action.DELETE, "p1": Action.RECREATE, "p4": Action.DELETE}


def test_what_was_not_read_is_left_alone() -> None:
    steps = plan(CLUSTER, [], SEEN["cluster"], absent=["cl1"])
    assert actions(carried_along(steps, {"cluster": SEEN["cluster"]})) == {"cl1": Action.DELETE}


@given(
    agents=st.lists(st.sampled_from([item["id"] for item in SEEN["agent"]]), unique=True),
    clusters=st.lists(st.sampled_from([item["id"] for item in SEEN["cluster"]]), unique=True),
    allocations=st.lists(st.sampled_from([item["id"] for item in SEEN["allocation"]]), unique=True),
)
def test_nothing_is_left_standing_on_what_is_gone(
    agents: list[str], clusters: list[str], allocations: list[str]
) -> None:
    steps = carried_along(steps_of(agent=agents, cluster=clusters, allocation=allocations), SEEN)
    gone = {(step.family.kind, step.key) for step in steps if step.action in GONE}
    for cluster in SEEN["cluster"]:
        expected = any((AGENT.kind, agent) in gone for agent in cluster["agents"]) or cluster["id"] in clusters
        assert ((CLUSTER.kind, cluster["id"]) in gone) is expected
    for allocation in SEEN["allocation"]:
        expected = (CLUSTER.kind, allocation["cluster"]) in gone or allocation["id"] in allocations
        assert ((ALLOCATION.kind, allocation["id"]) in gone) is expected
    for partition in SEEN["partition"]:
        assert ((PARTITION.kind, partition["id"]) in gone) is ((ALLOCATION.kind, partition["allocation"]) in gone)
