# SPDX-License-Identifier: GPL-3.0-or-later
"""Order and variables of the jobs of a workflow. Pure functions: no image is necessary."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tools.ee.jobs import Launch
from tools.ee.workflow import run_workflow


def node(name: str, kind: str = "job_template", data: dict[str, Any] | None = None, **related: str) -> dict[str, Any]:
    links = {kind: [{"identifier": each} for each in names.split()] for kind, names in related.items()}
    template = {"name": name.upper(), "type": kind}
    return {"identifier": name, "unified_job_template": template, "related": links, "extra_data": data or {}}


class Jobs:
    """Jobs whose results are the names of their templates; those in ``failing`` fail."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.launches: dict[str, Launch] = {}

    def __call__(self, name: str, launch: Launch) -> Any:
        self.launches[name] = launch
        status = "failed" if name in self.failing else "successful"
        return SimpleNamespace(status=status, artifacts={"last": name, name: 1})


def test_results_and_variables_of_the_workflow_reach_the_following_jobs() -> None:
    jobs = Jobs()
    question = {"variable": "size", "type": "integer", "required": True, "question_name": "Size"}
    workflow = {
        "name": "Chain",
        "survey_enabled": True,
        "survey_spec": {"spec": [question]},
        "workflow_nodes": [node("a", success_nodes="b"), node("b", data={"x": 2}, always_nodes="c"), node("c")],
    }
    result = run_workflow(workflow, jobs, Launch(answers={"size": 4}, user="alice"))
    assert (list(result.jobs), result.status) == (["a", "b", "c"], "successful")
    assert jobs.launches["A"].inherited == {"size": 4}
    assert jobs.launches["B"] == Launch(answers={"x": 2}, user="alice", inherited={"last": "A", "A": 1, "size": 4})
    assert jobs.launches["C"].inherited == {"last": "B", "A": 1, "B": 1, "size": 4}


def test_failures_and_denials_select_the_next_node() -> None:
    nodes = [
        node("a", success_nodes="gate", failure_nodes="report"),
        node("gate", "workflow_approval", success_nodes="b"),
        node("b"),
        node("report"),
    ]
    workflow = {"name": "Gate", "workflow_nodes": nodes}
    failed = run_workflow(workflow, Jobs("A"))
    assert (list(failed.jobs), failed.approvals, failed.status) == (["a", "report"], [], "successful")
    denied = run_workflow(workflow, Jobs(), approve=lambda name: name != "gate")
    assert (list(denied.jobs), denied.approvals, denied.status) == (["a"], ["gate"], "failed")
    assert run_workflow(workflow, Jobs("B")).status == "failed"


def test_a_node_with_two_parents_that_run_is_rejected() -> None:
    nodes = [node("a", always_nodes="c"), node("b", always_nodes="c"), node("c")]
    with pytest.raises(ValueError, match="Cannot run node 'c' of 'Join': it has several parents"):
        run_workflow({"name": "Join", "workflow_nodes": nodes}, Jobs())
