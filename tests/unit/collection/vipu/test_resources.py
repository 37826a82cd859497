# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of forced batches: dependents of removed objects."""

from __future__ import annotations

from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.reconcile import Action, Step, plan
from ansible_collections.openipu.pod.plugins.module_utils.vipu.resources import (
    AGENT,
    ALLOCATION,
    CLUSTER,
    FAMILIES,
    PARTITION,
    with_dependents,
)
from hypothesis import given
from hypothesis import strategies as st

ACTUAL: dict[str, list[dict[str, Any]]] = {
    "agent": [{"id": f"ag{n}", "host": f"127.2.1.{n}", "port": 8080} for n in range(1, 5)],
    "cluster": [{"id": "cl0", "agents": ["ag1", "ag2"]}, {"id": "cl1", "agents": ["ag3", "ag4"]}],
    "allocation": [
        {"id": "a0", "cluster": "cl0", "agents": ["ag1", "ag2"]},
        {"id": "a1", "cluster": "cl1", "agents": ["ag3"]},
        {"id": "a2", "cluster": "cl1", "agents": ["ag4"]},
    ],
    "partition": [{"id": f"p{n}", "allocation": f"a{n % 3}", "size": 1} for n in range(6)],
}
REMOVING = (Action.DELETE, Action.RECREATE)


def steps_of(**removed: list[str]) -> list[Step]:
    """Return the plan that keeps all objects except the removed ones."""
    steps = []
    for family in FAMILIES[:4]:
        out = removed.get(family.kind, [])
        desired = [item for item in ACTUAL[family.kind] if item["id"] not in out]
        steps += plan(family, desired, ACTUAL[family.kind], absent=out)
    return steps


def actions(steps: list[Step]) -> dict[str, Action]:
    return {step.key: step.action for step in steps if step.action is not Action.NONE}


def test_without_removals_no_dependents_are_added() -> None:
    assert with_dependents(steps_of(), ACTUAL) == steps_of()


def test_desired_partition_is_recreated_and_others_are_deleted() -> None:
    steps = plan(ALLOCATION, [], ACTUAL["allocation"], absent=["a1"])
    steps += plan(PARTITION, [ACTUAL["partition"][1]], ACTUAL["partition"])
    assert actions(with_dependents(steps, ACTUAL)) == {"a1": Action.DELETE, "p1": Action.RECREATE, "p4": Action.DELETE}


def test_kinds_that_were_not_read_stay_unchanged() -> None:
    steps = plan(CLUSTER, [], ACTUAL["cluster"], absent=["cl1"])
    assert actions(with_dependents(steps, {"cluster": ACTUAL["cluster"]})) == {"cl1": Action.DELETE}


@given(
    agents=st.lists(st.sampled_from([item["id"] for item in ACTUAL["agent"]]), unique=True),
    clusters=st.lists(st.sampled_from([item["id"] for item in ACTUAL["cluster"]]), unique=True),
    allocations=st.lists(st.sampled_from([item["id"] for item in ACTUAL["allocation"]]), unique=True),
)
def test_dependents_of_removed_objects_are_removed(
    agents: list[str], clusters: list[str], allocations: list[str]
) -> None:
    steps = with_dependents(steps_of(agent=agents, cluster=clusters, allocation=allocations), ACTUAL)
    removed_keys = {(step.family.kind, step.key) for step in steps if step.action in REMOVING}
    for cluster in ACTUAL["cluster"]:
        expected = any((AGENT.kind, agent) in removed_keys for agent in cluster["agents"]) or cluster["id"] in clusters
        assert ((CLUSTER.kind, cluster["id"]) in removed_keys) is expected
    for allocation in ACTUAL["allocation"]:
        expected = (CLUSTER.kind, allocation["cluster"]) in removed_keys or allocation["id"] in allocations
        assert ((ALLOCATION.kind, allocation["id"]) in removed_keys) is expected
    for partition in ACTUAL["partition"]:
        assert ((PARTITION.kind, partition["id"]) in removed_keys) is (
            (ALLOCATION.kind, partition["allocation"]) in removed_keys
        )
