# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of live jobs that a user deletes are written again."""

from __future__ import annotations

import pytest

from openipu.kubernetes.domain import reserved
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.operators import SECONDS, Operator, RunningJob, submit
from tests.unit.kubernetes.domain.ipujobs import first_form, workers
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")

OBJECTS = ("configmap/job-config", "role/job-launcher", "rolebinding/job-launcher", "serviceaccount/job-launcher")


def exists(job: RunningJob, name: str) -> bool:
    return job.cluster.run("get", name).returncode == 0


def delete(job: RunningJob, *names: str) -> None:
    for name in names:
        job.cluster.kubectl("delete", name)


def secret(job: RunningJob) -> str:
    """Return the name of the Secret with the SSH keys of a job."""
    (found,) = job.cluster.get("secrets", selector="graphcore.ai/ipujob")["items"]
    return f"secret/{found['metadata']['name']}"


def test_a_restart_finds_its_objects(operator: Operator) -> None:
    spec = {"launcher": {"command": ["mpirun"], "remoteShell": "SSH"}, "restartPolicy": {"type": "OnFailure"}}
    job = submit(operator, first_form(workers=workers(2), **spec))
    job.wait("Running")
    keys = secret(job)
    delete(job, "configmap/job-config", keys)
    job.end("job-launcher", 1)
    until(lambda: job.status.get("restartCount") == 1, SECONDS, lambda: operator.log[-3000:])
    job.wait("Running")
    assert exists(job, "configmap/job-config") and secret(job) == keys


def test_objects_of_a_running_job_are_checked(operator: Operator) -> None:
    operator.kill()
    operator.options = ("--check-seconds", "0.5")
    operator.start()
    job = submit(operator, first_form(workers=workers(2)))
    job.wait("Running")
    uids = {name: each["metadata"]["uid"] for name, each in job.pods().items()}
    delete(job, *OBJECTS)
    patch = '{"rules": []}'
    for name in OBJECTS:
        until(lambda name=name: exists(job, name), SECONDS, lambda: operator.log[-3000:])
    job.cluster.kubectl("patch", "role/job-launcher", "--type=merge", "--patch", patch)
    until(lambda: job.cluster.get("role", "job-launcher")["rules"], SECONDS, lambda: operator.log[-3000:])
    assert {name: each["metadata"]["uid"] for name, each in job.pods().items()} == uids
    assert job.status["restartCount"] == 0


def test_a_job_whose_objects_cannot_be_written_goes_on(operator: Operator) -> None:
    operator.kill()
    operator.options = ("--check-seconds", "0.5")
    operator.start()
    job, cluster = submit(operator, first_form(workers=workers(2))), operator.cluster
    job.wait("Running")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": cluster.namespace}}
    cluster.apply({**quota, "spec": {"hard": {"count/configmaps": "0"}}})
    until(lambda: cluster.get("resourcequota", "none").get("status", {}).get("hard"), SECONDS)
    delete(job, "configmap/job-config")
    until(
        lambda: any(reason == "ObjectsNotWritten" and "exceeded quota" in text for reason, text in job.events()),
        SECONDS,
        lambda: operator.log[-3000:],
    )
    job.end("job-worker-1", 1)  # a running launcher notices this itself, so only the counts change
    until(lambda: job.status["workersStatus"] == {"active": 1, "failed": 1}, SECONDS, lambda: operator.log[-3000:])
    cluster.kubectl("delete", "resourcequota", "none")
    until(lambda: exists(job, "configmap/job-config"), SECONDS, lambda: operator.log[-3000:])
    assert "handler failed" not in operator.log


def test_a_new_service_account_replaces_the_pods_of_a_job_that_starts(operator: Operator, node: HollowNode) -> None:
    """The token of a pod is valid for one service account only, even when another one has the same name."""
    operator.kill()
    operator.options = ("--check-seconds", "0.5")
    operator.start()
    running = submit(operator, first_form(workers=workers(1)), "running")
    running.wait("Running")
    kept = uids(running)
    node.init_containers.add(reserved.INIT_CONTAINER)
    try:
        job = submit(operator, first_form(workers=workers(2)))
        names = {"job-launcher", "job-worker-0", "job-worker-1"}
        former = until(
            lambda: found if (found := uids(job)).keys() == names else None, SECONDS, lambda: operator.log[-3000:]
        )
        delete(job, "serviceaccount/job-launcher", "serviceaccount/running-launcher")
        until(
            lambda: (found := uids(job)).keys() == names and not set(found.values()) & set(former.values()),
            SECONDS,
            lambda: operator.log[-3000:],
        )
        until(lambda: exists(job, "serviceaccount/running-launcher"), SECONDS)
    finally:
        node.init_containers.discard(reserved.INIT_CONTAINER)
    assert uids(running) == kept
    assert job.status["restartCount"] == 0


def uids(job: RunningJob) -> dict[str, str]:
    """Return name -> UID of the pods of a job."""
    return {name: each["metadata"]["uid"] for name, each in job.pods().items()}
