# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of a queueing system, such as Kueue. It suspends and resumes them, and chooses their nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from openipu.kubernetes.domain import status as statuses
from tests.integration.vipu_servers import InProcess, listed
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.operators import SECONDS, Operator, RunningJob, partitions, submit
from tests.unit.kubernetes.domain.ipujobs import first_form, workers
from tests.waiting import until

QUEUE_LABEL = "queue.example.com/name"


@dataclass
class Queue:
    """A queue with a quota of IPUs and a flavor of nodes. It uses only what Kueue uses of a job.

    A job is created suspended. To admit it, the queue sets the node selector of its flavor and clears ``suspend`` in
    one change. To stop it, the queue sets ``suspend``, and restores the node selector when no pod is active.
    """

    cluster: Cluster
    ipus: int
    flavor: dict[str, str]
    _given: dict[str, dict[str, str]] = field(default_factory=dict)  # node selectors of admitted jobs

    def admit(self) -> None:
        """Admit the waiting jobs for which the quota suffices, the oldest first."""
        jobs = sorted(self._jobs(), key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))
        used = sum(self._size(each) for each in jobs if self._uses_quota(each))
        for each in jobs:
            if each["spec"].get("suspend") and used + self._size(each) <= self.ipus:
                used += self._size(each)
                name = each["metadata"]["name"]
                self._given[name] = each["spec"]["workers"]["template"]["spec"].get("nodeSelector") or {}
                self._patch(name, suspend=False, selector={**self._given[name], **self.flavor})

    def stop(self, job: RunningJob) -> None:
        """Take the quota of a job back."""
        self._patch(job.name, suspend=True)
        until(lambda: job.status["workersStatus"].get("active", 0) == 0, SECONDS, lambda: str(job.status))
        gone = dict.fromkeys(self.flavor)
        self._patch(job.name, suspend=True, selector={**gone, **self._given.pop(job.name)})

    def _jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.get("ipujobs", selector=QUEUE_LABEL)["items"]
        return found

    def _uses_quota(self, job: dict[str, Any]) -> bool:
        return not job["spec"].get("suspend") and not statuses.is_finished(job.get("status") or {})

    def _size(self, job: dict[str, Any]) -> int:
        return int(job["spec"]["modelReplicas"]) * int(job["spec"]["ipusPerModelReplica"])

    def _patch(self, name: str, *, suspend: bool, selector: dict[str, str | None] | None = None) -> None:
        template = {} if selector is None else {"workers": {"template": {"spec": {"nodeSelector": selector}}}}
        patch = json.dumps({"spec": {"suspend": suspend, **template}})
        self.cluster.kubectl("patch", "ipujob", name, "--type=merge", "--patch", patch)


@pytest.fixture
def queue(cluster: Cluster, node: HollowNode) -> Iterator[Queue]:
    """Yield a queue for one job of 16 IPUs at a time, and a node of its flavor."""
    cluster.kubectl("label", "node", node.name, "pool=a", "disk=fast")
    yield Queue(cluster, 16, {"pool": "a"})
    cluster.kubectl("label", "node", node.name, "pool-", "disk-")


def queued(operator: Operator, name: str, **pod: Any) -> RunningJob:
    """Create a job of 16 IPUs as a user of the queue does."""
    job = first_form(modelReplicas="16", suspend=True, workers=workers(2, **pod))
    created = submit(operator, job, name)
    operator.cluster.kubectl("label", "ipujob", name, f"{QUEUE_LABEL}=team")
    created.wait("Suspended")
    return created


def selectors(job: RunningJob) -> list[dict[str, str]]:
    """Return the different node selectors of the pods."""
    found = [each["spec"]["nodeSelector"] for each in job.pods().values()]
    return [each for index, each in enumerate(found) if each not in found[:index]]


def test_jobs_run_when_the_queue_admits_them(operator: Operator, queue: Queue) -> None:
    first, second = (queued(operator, name) for name in ("a", "b"))
    assert partitions(operator) == set()
    queue.admit()
    first.wait("Running")
    assert selectors(first) == [{"pool": "a", "ipunode": "node1"}]
    assert first.status["restartCount"] == 0
    queue.admit()  # the quota is in use
    first.end("a-launcher", 0)
    first.wait("Succeeded")
    assert second.wait("Suspended") and not second.pods()
    queue.admit()
    second.wait("Running")


def test_a_stopped_job_gives_its_ipus_back_and_runs_again_elsewhere(
    operator: Operator, queue: Queue, node: HollowNode
) -> None:
    job = queued(operator, "job", nodeSelector={"disk": "fast"})
    queue.admit()
    job.wait("Running")
    queue.stop(job)
    until(lambda: not job.pods() and not partitions(operator), SECONDS, lambda: operator.log[-3000:])
    assert job.thing["spec"]["workers"]["template"]["spec"]["nodeSelector"] == {"disk": "fast"}
    operator.cluster.kubectl("label", "node", node.name, "pool=b", "--overwrite")
    queue.flavor = {"pool": "b"}
    queue.admit()
    status = job.wait("Running")
    assert selectors(job) == [{"disk": "fast", "pool": "b", "ipunode": "node1"}]
    assert status["restartCount"] == 0
    assert status["startTime"]


def test_ipus_come_from_the_nodes_that_the_queue_has_chosen(
    operator: Operator, queue: Queue, vipu: Callable[..., InProcess]
) -> None:
    other = vipu()
    operator.kill()
    operator.proxy.kill()
    operator.proxy.controllers.write_text(
        f"{operator.proxy.vipu.address}:ipunode=node1\n{other.address}:ipunode=node2\n"
    )
    operator.proxy.start()
    operator.start()
    job = queued(operator, "job")
    queue.flavor = {"ipunode": "node2"}
    queue.admit()
    until(lambda: job.pods(), SECONDS, lambda: operator.log[-3000:])
    assert (partitions(operator), len(listed(other))) == (set(), 1)
    assert selectors(job) == [{"ipunode": "node2"}]


def test_nodes_without_ipus_are_reported(operator: Operator, queue: Queue) -> None:
    job = queued(operator, "job")
    queue.flavor = {"ipunode": "node3"}
    queue.admit()
    text = "No V-IPU controller has the label of these nodes. Label the nodes, or select nodes with its label."
    until(lambda: job.status.get("lastMessage", "").startswith(text), SECONDS, lambda: str(job.status))
    assert job.wait("Pending") and not job.pods()
