# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that no V-IPU controller can hold, and jobs with denied pods: their reasons, and the order of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.status import State
from tests.integration.vipu_servers import InProcess, listed
from tests.kubernetes.operators import SECONDS, Operator, RunningJob, partitions, submit
from tests.unit.kubernetes.domain.ipujobs import first_form, workers
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")


def pending(job: RunningJob, reason: str, text: str) -> Any:
    """Wait until a job is pending for a reason."""

    def found() -> Any:
        condition = statuses.condition(job.status, State.PENDING)
        return condition is not None and (condition["reason"], text in condition["message"]) == (reason, True)

    until(found, SECONDS, lambda: f"{job.status} {job.operator.log[-3000:]}")
    return job.wait("Pending")


def add_controller(operator: Operator, vipu: InProcess, label: str) -> None:
    """Add a V-IPU controller for the nodes with a label to the list, and let the proxy read it at once."""
    proxy = operator.proxy
    proxy.kill()
    proxy.controllers.write_text(f"{proxy.controllers.read_text()}{vipu.address}:{label}\n")
    proxy.start()


def test_a_job_that_no_controller_can_hold_blocks_nobody(operator: Operator, vipu: Callable[..., InProcess]) -> None:
    large = submit(operator, first_form(modelReplicas="64"), "a-large")
    status = pending(large, statuses.UNSCHEDULABLE, "can have a partition of 64 IPUs. The largest possible one has 32.")
    assert status["lastMessage"].endswith("Until then, other jobs come first.")
    assert statuses.UNSCHEDULABLE in {reason for reason, _ in large.events()}
    small = submit(operator, first_form(), "b-small")
    small.wait("Running")
    assert not large.pods()
    added = vipu(16)
    add_controller(operator, added, "ipunode=node1")
    status = large.wait("Running")
    assert len(listed(added)) == 1
    condition = statuses.condition(status, State.PENDING)
    assert condition is not None and condition["reason"] == "IPUJobPending"
    large.delete()
    small.delete()
    assert partitions(operator) == listed(added) == set()


def test_a_job_with_a_node_selector_counts_only_the_controllers_of_its_nodes(
    operator: Operator, vipu: Callable[..., InProcess]
) -> None:
    small_site = vipu(2)
    add_controller(operator, small_site, "ipunode=node2")
    large = submit(operator, first_form(modelReplicas="16", workers=workers(nodeSelector={"ipunode": "node2"})), "a")
    pending(large, statuses.UNSCHEDULABLE, "can have a partition of 16 IPUs. The largest possible one has 8.")
    nowhere = submit(operator, first_form(workers=workers(nodeSelector={"ipunode": "node9"})), "b")
    pending(nowhere, statuses.UNSCHEDULABLE, "No V-IPU controller has the label of these nodes.")
    submit(operator, first_form(modelReplicas="32"), "c").wait("Running")
    waiting = submit(operator, first_form(modelReplicas="32"), "d")
    until(lambda: "Position 1 " in waiting.status.get("lastMessage", ""), SECONDS, lambda: str(waiting.status))


def test_a_denied_job_blocks_no_other_job(operator: Operator) -> None:
    cluster = operator.cluster
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": cluster.namespace}}
    cluster.apply({**quota, "spec": {"hard": {"requests.example.com/device": "0"}}})
    until(lambda: cluster.get("resourcequota", "none").get("status", {}).get("hard"), SECONDS)
    wish = {"resources": {"limits": {"example.com/device": "1"}}}
    denied = submit(operator, first_form(modelReplicas="32", workers=workers(container=wish)), "a-denied")
    pending(denied, statuses.DENIED, "exceeded quota")
    first = submit(operator, first_form(modelReplicas="16"), "b")
    first.wait("Running")
    # Half of the IPUs are in use, so that the denied job waits for the rest when it is tried again.
    second = submit(operator, first_form(modelReplicas="16"), "c")
    second.wait("Running")
    until(lambda: "Its pods were denied" in denied.status["lastMessage"], SECONDS, lambda: str(denied.status))
    third = submit(operator, first_form(modelReplicas="8"), "d")
    until(lambda: "Position 1 " in third.status.get("lastMessage", ""), SECONDS, lambda: str(third.status))
    cluster.kubectl("delete", "resourcequota", "none")
    for each in (first, second, third):
        each.delete()
    denied.wait("Running")
