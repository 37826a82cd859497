# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletion of namespaces with live jobs and pods, and deletion of jobs by force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from openipu.kubernetes.operator.job_store import FINALIZER
from tests.integration.vipu_servers import partition
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import SECONDS, Operator, RunningJob, partitions, submit
from tests.unit.kubernetes.domain.ipujobs import first_form
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")

FOREIGN = "of-others"  # partition without a record


@pytest.fixture
def users(operator: Operator) -> Iterator[Operator]:
    """Yield an operator for the jobs of another namespace. Its proxy has the tracker in its own one."""
    namespace = f"{operator.cluster.namespace}-users"
    operator.kill()
    operator.options = ("--watch-namespaces", namespace)
    operator.start()
    there = replace(operator.cluster, namespace=namespace)
    there.create_namespace()
    yield replace(operator, cluster=there)


def is_gone(namespace: Cluster) -> bool:
    return namespace.run("get", "namespace", namespace.namespace).returncode != 0


def test_a_namespace_with_live_jobs_can_be_deleted(users: Operator) -> None:
    """Kubernetes deletes the objects of a job in any order, and rejects new ones, such as events."""
    users.proxy.vipu.user.CreatePartition(partition(FOREIGN, 2, num_gcds=1))
    running = submit(users, first_form(modelReplicas="16", restartPolicy={"type": "Always"}), "running")
    running.wait("Running")
    ended = submit(users, first_form(), "ended")
    ended.wait("Running")
    ended.end("ended-launcher", 0)
    ended.wait("Succeeded")
    waiting = submit(users, first_form(modelReplicas="16"), "waiting")
    until(lambda: "Position 1" in waiting.status.get("lastMessage", ""), SECONDS)
    users.cluster.kubectl("delete", "namespace", users.cluster.namespace, "--wait=false")
    until(lambda: is_gone(users.cluster), SECONDS, lambda: users.log[-3000:])
    assert partitions(users) == {FOREIGN}
    assert users.proxy.records() == {}
    assert "handler failed" not in users.log


def test_a_job_deleted_by_force_leaves_its_record(operator: Operator) -> None:
    """The record makes the next proxy release the partition of a job that no longer exists."""
    job = submit(operator, first_form())
    job.wait("Running")
    kept = submit(operator, first_form(), "kept")
    kept.wait("Running")
    orphan = f"p-job-{operator.cluster.namespace}-0"
    operator.proxy.kill()
    operator.cluster.kubectl("delete", "ipujob", "job", "--wait=false")
    until(lambda: "PartitionsNotReleased" in {reason for reason, _ in job.events()}, SECONDS)
    remove_finalizer(job)
    until(lambda: operator.cluster.run("get", "ipujob", "job").returncode != 0, SECONDS)
    until(lambda: not job.pods(), SECONDS)
    assert orphan in partitions(operator)
    assert operator.proxy.records()[orphan]["name"] == "job"
    operator.proxy.start()
    until(lambda: orphan not in partitions(operator), SECONDS, lambda: operator.proxy.log[-3000:])
    until(lambda: orphan not in operator.proxy.records(), SECONDS)
    assert set(operator.proxy.records()) == partitions(operator) == {f"p-kept-{operator.cluster.namespace}-0"}


def remove_finalizer(job: RunningJob) -> None:
    """Remove the finalizer of the operator as the documentation says."""
    assert job.thing["metadata"]["finalizers"] == [FINALIZER]
    patch = '{"metadata": {"finalizers": null}}'
    job.cluster.kubectl("patch", "ipujob", job.name, "--type=merge", "--patch", patch)
