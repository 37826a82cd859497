# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator at a real API server, with the real proxy and real V-IPU controllers. Pods are hollow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import virmgrpc
from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.kubernetes.hollow import HollowNode
from tests.kubernetes.init_containers import InitContainer
from tests.kubernetes.operators import SECONDS, Operator, RunningJob, partitions, submit
from tests.ports import free_port
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")


def test_a_job_runs_and_succeeds(operator: Operator) -> None:
    job = submit(operator, first_form())
    status = job.wait("Running")
    namespace = operator.cluster.namespace
    assert partitions(operator) == {f"p-job-{namespace}-0"}
    assert [(each["type"], each["status"], each["reason"], each["message"]) for each in status["conditions"]] == [
        ("Pending", "False", "IPUJobPending", f"IPUJob {namespace}/job is waiting for resources to be ready."),
        ("Running", "True", "IPUJobRunning", f"IPUJob {namespace}/job is running."),
    ]
    assert status["iPUPartitionCreated"]
    assert (status["launcherStatus"], status["restartCount"]) == ("Running", 0)
    assert (status["currentReplicas"], status["desiredReplicas"], status["observedGeneration"]) == (1, 1, 1)
    assert set(job.pods()) == {"job-launcher", "job-worker-0"}
    [options] = [
        json.loads(each["value"])
        for each in job.pods()["job-worker-0"]["spec"]["containers"][0]["env"]
        if each["name"] == "POPLAR_TARGET_OPTIONS"
    ]
    assert (options["ipuLinkDomainSize"], options["ipuLinkTopology"]) == ("4", "mesh")
    job.end("job-launcher", 0)
    status = job.wait("Succeeded")
    assert status["completionTime"]
    assert set(job.pods()) == {"job-launcher", "job-worker-0"}  # cleanPodPolicy None
    assert partitions(operator)  # until the job is deleted
    job.delete()
    assert partitions(operator) == set()
    until(lambda: not job.pods(), SECONDS)
    reasons = sorted(reason for reason, _ in job.events())
    assert reasons == ["IPUJobPending", "IPUJobRunning", "IPUJobSucceeded", "PodsCreated"]


@pytest.mark.parametrize(
    ("policy", "exit_code", "state", "restarts"),
    [
        ({"type": "Never"}, 1, "Failed", 0),
        ({"type": "OnFailure", "backOffLimit": 1}, 1, "Failed", 1),
        ({"type": "OnFailure", "backOffLimit": 1}, 0, "Succeeded", 0),
        ({"type": "Always", "backOffLimit": 1}, 0, "Succeeded", 1),
        ({"type": "ExitCode", "exitCodes": "1-10,130", "backOffLimit": 1}, 130, "Failed", 1),
        ({"type": "ExitCode", "exitCodes": "1-10,130", "backOffLimit": 1}, 20, "Failed", 0),
    ],
)
def test_restart_policies(
    operator: Operator, policy: dict[str, Any], exit_code: int, state: str, restarts: int
) -> None:
    job = submit(operator, first_form(restartPolicy=policy))
    before: dict[str, str] = {}
    for attempt in range(restarts + 1):
        until(lambda attempt=attempt: job.status.get("restartCount") == attempt, SECONDS, lambda: operator.log[-3000:])
        job.wait("Running")
        uids = {name: each["metadata"]["uid"] for name, each in job.pods().items()}
        assert not set(uids.values()) & set(before.values())  # workers are new, too
        before = uids
        job.end("job-launcher", exit_code)
    status = job.wait(state)
    assert status["restartCount"] == restarts
    assert [each["type"] for each in status["conditions"]].count("Restarting") == bool(restarts)
    assert partitions(operator) == {f"p-job-{operator.cluster.namespace}-0"}


def test_a_failure_says_why(operator: Operator) -> None:
    job = submit(operator, first_form())
    job.wait("Running")
    job.end("job-launcher", 3)
    name = f"{operator.cluster.namespace}/job"
    assert job.wait("Failed")["lastMessage"] == (
        f"IPUJob {name} has failed: container resnet of pod job-launcher ended with exit code 3."
    )


@pytest.mark.parametrize(("policy", "kept"), [("All", set()), ("Workers", {"job-launcher"})])
def test_clean_pod_policies(operator: Operator, policy: str, kept: set[str]) -> None:
    job = submit(operator, first_form(cleanPodPolicy=policy))
    job.wait("Running")
    job.end("job-launcher", 0)
    job.wait("Succeeded")
    until(lambda: set(job.pods()) == kept, SECONDS)
    assert partitions(operator)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_published_examples_run(operator: Operator, example: Path) -> None:
    operator.cluster.kubectl("apply", "--filename", example)
    try:
        name = operator.cluster.get("ipujobs")["items"][0]["metadata"]["name"]
        job = RunningJob(operator, name)
        if "nfs" in example.stem:  # the class of its volume differs from that of its claim
            until(lambda: "has no node" in job.status.get("lastMessage", ""), SECONDS)
            assert "PersistentVolumeClaim" in job.status["lastMessage"]
            return
        job.wait("Running")
        row = operator.cluster.kubectl("get", "ipujobs.graphcore.ai", "--no-headers").split()
        assert row[:2] == [name, "Running"]
    finally:
        operator.cluster.kubectl("delete", "--filename", example, "--timeout=50s")


def test_suspended_jobs_have_neither_pods_nor_ipus(operator: Operator) -> None:
    job = submit(operator, first_form(suspend=True))
    job.wait("Suspended")
    assert (job.pods(), partitions(operator)) == ({}, set())
    set_suspend(job, suspend=False)
    job.wait("Running")
    set_suspend(job, suspend=True)
    status = job.wait("Suspended")
    until(lambda: not job.pods() and not partitions(operator), SECONDS)
    until(lambda: not job.status["iPUPartitionCreated"], SECONDS)
    assert "startTime" not in status
    set_suspend(job, suspend=False)
    assert job.wait("Running")["restartCount"] == 0


def set_suspend(job: RunningJob, *, suspend: bool) -> None:
    """Suspend or resume a job."""
    patch = f'{{"spec":{{"suspend":{str(suspend).lower()}}}}}'
    job.cluster.kubectl("patch", "ipujob", job.name, "--type=merge", "--patch", patch)


def test_a_job_scales(operator: Operator) -> None:
    namespace = operator.cluster.namespace
    job = submit(operator, second_form(ipusPerJobInstance="2", jobInstances=1))
    job.wait("Running")
    operator.cluster.kubectl("scale", "ipujob", "job", "--replicas=3")
    until(lambda: job.status.get("currentReplicas") == 3, SECONDS, lambda: operator.log[-3000:])
    assert set(job.pods()) == {"job-worker-0", "job-worker-1", "job-worker-2"}
    assert partitions(operator) == {f"p-job-{namespace}-{number}" for number in range(3)}
    operator.cluster.kubectl("scale", "ipujob", "job", "--replicas=1")
    until(lambda: partitions(operator) == {f"p-job-{namespace}-0"}, SECONDS, lambda: operator.log[-3000:])
    assert set(job.pods()) == {"job-worker-0"}
    until(lambda: job.status.get("currentReplicas") == 1, SECONDS)


def test_jobs_get_ipus_in_the_order_of_their_creation(operator: Operator) -> None:
    namespace = operator.cluster.namespace
    first = submit(operator, first_form(modelReplicas="32"), "first")
    first.wait("Running")
    waiting = [submit(operator, first_form(modelReplicas=size), f"job-{size}") for size in ("16", "2")]
    # Creation times have seconds only, so names decide here: job-16 comes before job-2.
    for position, each in enumerate(waiting, 1):
        text = f"Position {position} of the jobs in namespace {namespace} that wait for IPUs."
        reason = "No V-IPU controller has 16 free IPUs for a partition."
        expected = f"{text} {reason}"
        until(lambda each=each, expected=expected: each.status.get("lastMessage") == expected, SECONDS)
        assert each.wait("Pending")["iPUPartitionCreated"] is False
    first.delete()
    for each in waiting:
        each.wait("Running")


def test_a_small_job_does_not_overtake_a_large_one(operator: Operator) -> None:
    first = submit(operator, first_form(modelReplicas="16"), "a")
    first.wait("Running")
    large = submit(operator, first_form(modelReplicas="32"), "b")
    until(lambda: "Position 1" in large.status.get("lastMessage", ""), SECONDS)
    small = submit(operator, first_form(modelReplicas="4"), "c")
    until(lambda: "Position 2" in small.status.get("lastMessage", ""), SECONDS)
    assert len(partitions(operator)) == 1  # 16 IPUs are free, but the large job is first
    large.delete()
    small.wait("Running")


def test_a_lost_partition_restarts_the_job(operator: Operator) -> None:
    job = submit(operator, first_form(restartPolicy={"type": "OnFailure"}))
    job.wait("Running")
    remove(operator, f"p-job-{operator.cluster.namespace}-0")
    until(lambda: job.status.get("restartCount") == 1, SECONDS, lambda: operator.log[-3000:])
    job.wait("Running")
    assert len(partitions(operator)) == 1
    assert "PartitionLost" in {reason for reason, _ in job.events()}


def remove(operator: Operator, partition: str) -> None:
    """Remove a partition behind the back of the proxy."""
    operator.proxy.vipu.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=partition))


def test_a_deleted_launcher_counts_as_a_failure(operator: Operator) -> None:
    job = submit(operator, first_form())
    job.wait("Running")
    operator.cluster.kubectl("delete", "pod", "job-launcher")
    assert "the launcher was deleted" in job.wait("Failed")["lastMessage"]


def test_a_deleted_worker_of_a_service_is_replaced(operator: Operator) -> None:
    job = submit(operator, second_form())
    job.wait("Running")
    before = job.pods()["job-worker-0"]["metadata"]["uid"]
    operator.cluster.kubectl("delete", "pod", "job-worker-0")
    until(lambda: job.pods().get("job-worker-0", {"metadata": {"uid": before}})["metadata"]["uid"] != before, SECONDS)
    assert job.wait("Running")["restartCount"] == 0


@pytest.mark.parametrize("strategy", ["Recreate", "RollingUpdate"])
def test_a_changed_template_replaces_the_pods(operator: Operator, strategy: str) -> None:
    spec = workers() | {"strategy": strategy}
    job = submit(operator, second_form(ipusPerJobInstance="2", jobInstances=2, workers=spec))
    job.wait("Running")
    patch = '[{"op":"replace","path":"/spec/workers/template/spec/containers/0/image","value":"resnet:2"}]'
    operator.cluster.kubectl("patch", "ipujob", "job", "--type=json", "--patch", patch)
    until(lambda: images(job) == ["resnet:2", "resnet:2"], SECONDS, lambda: operator.log[-3000:])
    until(lambda: job.status["currentReplicas"] == 2, SECONDS)
    assert job.status["restartCount"] == 0
    assert len(partitions(operator)) == 2


def test_a_changed_size_replaces_pods_and_partition(operator: Operator) -> None:
    """Webhooks reject such a change. They may be switched off, or not apply to the namespace."""
    job = submit(operator, first_form())
    job.wait("Running")
    before = {each["metadata"]["uid"] for each in job.pods().values()}
    patch = '{"spec": {"modelReplicas": "8", "workers": {"replicas": 2}}}'
    operator.cluster.kubectl("patch", "ipujob", "job", "--type=merge", "--patch", patch)
    names = {"job-launcher", "job-worker-0", "job-worker-1"}
    until(
        lambda: {name for name, each in job.pods().items() if each["metadata"]["uid"] not in before} == names,
        SECONDS,
        lambda: operator.log[-3000:],
    )
    [record] = operator.proxy.records().values()
    assert (record["size"], record["workers"]) == (8, 2)
    assert partitions(operator) == {record_id(operator)}
    for number in range(2):
        container = job.pods()[f"job-worker-{number}"]["spec"]["containers"][0]
        variables = {each["name"]: each.get("value") for each in container["env"]}
        assert variables["POPDIST_NUM_TOTAL_REPLICAS"] == "8"
        assert variables["IPUOF_VIPU_API_GCD_ID"] == str(number)
        assert variables["IPUOF_VIPU_API_PARTITION_ID"] == record_id(operator)
    assert job.wait("Running")["restartCount"] == 0


def record_id(operator: Operator) -> str:
    """Return the id of the only partition of the tracker."""
    [id] = operator.proxy.records()
    return id


def images(job: RunningJob) -> list[str]:
    """Return the images of the pods."""
    return [each["spec"]["containers"][0]["image"] for each in job.pods().values()]


def test_an_image_that_cannot_be_pulled_is_reported(operator: Operator, node: HollowNode) -> None:
    node.broken_images.add("missing:1")
    job = submit(operator, first_form(workers=workers(container={"image": "missing:1"})))
    text = "Container resnet of pod job-launcher does not start: ErrImagePull"
    until(lambda: job.status.get("lastMessage") == text, SECONDS, lambda: str(job.status))
    assert job.wait("Pending")
    job.delete()


def test_a_quota_leaves_the_job_pending_without_ipus(cluster: Cluster, operator: Operator) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods", "namespace": cluster.namespace},
        "spec": {"hard": {"pods": "1"}},
    }
    cluster.create(quota)
    until(lambda: cluster.get("resourcequota", "pods").get("status", {}).get("used"), SECONDS)
    job = submit(operator, first_form())
    until(lambda: "exceeded quota" in job.status.get("lastMessage", ""), SECONDS, lambda: str(job.status))
    until(lambda: not partitions(operator) and not job.pods(), SECONDS)
    assert job.wait("Pending")


def test_a_foreign_object_is_left_alone(operator: Operator) -> None:
    cluster = operator.cluster
    cluster.kubectl("create", "configmap", "job-config", "--from-literal=mine=1")
    job = submit(operator, first_form())
    until(lambda: "job-config exists and belongs to no IPUJob" in job.status.get("lastMessage", ""), SECONDS)
    assert cluster.get("configmap", "job-config")["data"] == {"mine": "1"}
    cluster.kubectl("delete", "configmap", "job-config")
    job.wait("Running")


def test_a_pod_of_another_operator_is_left_alone(operator: Operator) -> None:
    operator.kill()
    job = submit(operator, first_form())
    uid, namespace = job.thing["metadata"]["uid"], operator.cluster.namespace
    owner = {"apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "name": "job", "uid": uid}
    metadata = {"name": "job-launcher", "namespace": namespace, "ownerReferences": [owner]}
    spec = {"containers": [{"name": "main", "image": "main"}]}
    operator.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    before = operator.cluster.get("pod", "job-launcher")["metadata"]["uid"]
    operator.start()
    text = f"Pod {namespace}/job-launcher of the job was not created by this operator. Delete it."
    until(lambda: job.status.get("lastMessage") == text, SECONDS, lambda: operator.log[-3000:])
    assert operator.cluster.get("pod", "job-launcher")["metadata"]["uid"] == before
    assert "NameInUse" in {reason for reason, _ in job.events()}
    operator.cluster.kubectl("delete", "pod", "job-launcher")
    job.wait("Running")


def test_an_invalid_job_fails_and_runs_when_it_is_corrected(operator: Operator) -> None:
    job = submit(operator, first_form(modelReplicas="3"))
    assert "the size of a partition is a power of two" in job.wait("Failed")["lastMessage"]
    operator.cluster.kubectl("patch", "ipujob", "job", "--type=merge", "--patch", '{"spec":{"modelReplicas":"2"}}')
    job.wait("Running")


def test_a_running_job_that_becomes_invalid_gives_its_ipus_back(operator: Operator) -> None:
    job = submit(operator, first_form())
    job.wait("Running")
    operator.cluster.kubectl("patch", "ipujob", "job", "--type=merge", "--patch", '{"spec":{"modelReplicas":"3"}}')
    job.wait("Failed")
    until(lambda: not job.pods() and not partitions(operator), SECONDS, lambda: operator.log[-3000:])


def test_a_deleted_job_waits_for_the_proxy(operator: Operator) -> None:
    job = submit(operator, first_form())
    job.wait("Running")
    operator.proxy.kill()
    operator.cluster.kubectl("delete", "ipujob", "job", "--wait=false")
    until(lambda: "PartitionsNotReleased" in {reason for reason, _ in job.events()}, SECONDS)
    assert job.thing["metadata"]["finalizers"] == ["ipu.finalizers.graphcore.ai"]
    operator.proxy.start()
    until(lambda: not operator.cluster.get("ipujobs")["items"], SECONDS, lambda: operator.log[-3000:])
    assert partitions(operator) == set()


def test_a_job_of_a_killed_operator_goes_on(operator: Operator) -> None:
    job = submit(operator, first_form())
    job.wait("Running")
    operator.kill()
    job.end("job-launcher", 0)
    operator.start()
    job.wait("Succeeded")
    assert job.status["restartCount"] == 0


def test_another_replica_takes_over(operator: Operator) -> None:
    other = replace(operator, name="other", port=free_port(), process=None)
    other.start(leads=False)
    try:
        job = submit(operator, first_form())
        job.wait("Running")
        operator.kill()
        job.end("job-launcher", 0)
        job.wait("Succeeded")
        assert "leading" in other.log
    finally:
        other.kill()


@pytest.mark.parametrize(("pod", "status"), [("job-launcher", 0), ("job-worker-0", 1)])
def test_the_init_container_resets_the_partition_of_its_own_job(
    operator: Operator, tmp_path: Path, pod: str, status: int
) -> None:
    operator.kill()
    operator.options = ("--log-format", "json")
    operator.start()
    job = submit(operator, first_form())
    job.wait("Running")
    init = InitContainer(job, tmp_path, pod)
    init.start()
    assert init.wait() == status, init.log
    events = [json.loads(line) for line in init.log.splitlines() if line.startswith("{")]
    assert events and {each.get("job") for each in events} == {f"{operator.cluster.namespace}/job"}
    assert (tmp_path / "tools" / "kubectl").stat().st_mode & 0o111
    if status:
        assert "Error OPU902: Pod" in init.log and "is neither a launcher nor a pod with IPUs" in init.log
    else:
        assert "partition is ready" in init.log
