# SPDX-License-Identifier: GPL-3.0-or-later
"""Workflows: run the jobs of their nodes in the order of AWX, with the results of earlier jobs as variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .jobs import Job, Launch
from .survey import extra_variables

APPROVAL = "workflow_approval"
_FAILED = {"failure_nodes", "always_nodes"}
_SUCCEEDED = {"success_nodes", "always_nodes"}


@dataclass
class Workflow:
    """Result of a workflow: its jobs and approvals by the identifier of the node, in the order of their start."""

    jobs: dict[str, Job] = field(default_factory=dict)
    approvals: list[str] = field(default_factory=list)
    status: str = "successful"


def run_workflow(
    workflow: Mapping[str, Any],
    run: Callable[[str, Launch], Job],
    launch: Launch | None = None,
    *,
    approve: Callable[[str], bool] = lambda _identifier: True,
) -> Workflow:
    """Run a workflow, and return its result. A node without parents starts first.

    Args:
        workflow: an item of ``controller_workflows``. No node may wait for several parents.
        run: function that runs the job template with this name.
        launch: answers to the survey of the workflow, and its user.
        approve: function that approves or denies a node with this identifier.

    Raises:
        LaunchError: when AWX would reject the launch.
        ValueError: when a node has several parents that run.
    """
    launch = launch or Launch()
    own = extra_variables(workflow, launch.answers)
    variables = {**own.template, **own.answers}
    nodes = {node["identifier"]: node for node in workflow["workflow_nodes"]}
    children = {child for node in nodes.values() for child in _children(node)}
    result = Workflow()
    waiting: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in nodes if name not in children]
    while waiting:
        identifier, inherited = waiting.pop(0)
        if identifier in result.jobs or identifier in result.approvals:
            raise ValueError(f"Cannot run node '{identifier}' of '{workflow['name']}': it has several parents.")
        node = nodes[identifier]
        template = node["unified_job_template"]
        results = dict(inherited)
        if template["type"] == APPROVAL:
            result.approvals.append(identifier)
            succeeded = approve(identifier)
        else:
            # Variables of the workflow replace the results of earlier jobs.
            answers = node.get("extra_data") or {}
            job = run(template["name"], Launch(answers=answers, user=launch.user, inherited=inherited | variables))
            result.jobs[identifier] = job
            succeeded = job.status == "successful"
            results |= job.artifacts
        following = _children(node, _SUCCEEDED if succeeded else _FAILED)
        if not succeeded and not following:
            result.status = "failed"
        waiting += [(child, results) for child in following]
    return result


def _children(node: Mapping[str, Any], kinds: set[str] | None = None) -> list[str]:
    related = node.get("related") or {}
    return [child["identifier"] for kind in sorted(kinds or related) for child in related.get(kind, [])]
