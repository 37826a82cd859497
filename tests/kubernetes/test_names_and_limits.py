# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs with long names, several instances and quotas, and what kubectl prints of them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.kubernetes.operators import SECONDS, Operator, RunningJob, partitions, submit
from tests.unit.kubernetes.domain.ipujobs import first_form, second_form, workers
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("node")


@pytest.mark.parametrize("name", ["n" * 63, "long-name." * 25 + "end"], ids=["63", "253"])
def test_jobs_with_long_names_run(operator: Operator, name: str) -> None:
    job = submit(operator, first_form(workers=workers(2)), name)
    job.wait("Running")
    (id,) = partitions(operator)
    assert len(id) <= 63
    listed = operator.cluster.get("pods")["items"]
    assert len(listed) == 3
    for each in listed:
        variables = {each["name"]: each.get("value") for each in each["spec"]["containers"][0]["env"]}
        if each["metadata"]["labels"]["graphcore.ai/role"] == "worker":
            assert variables["IPUOF_VIPU_API_PARTITION_ID"] == id
    assert {reason for reason, _ in job.events()} == {"IPUJobPending", "PodsCreated", "IPUJobRunning"}
    job.delete()
    assert partitions(operator) == set()


def test_instances_have_launchers_and_workers_of_their_own(operator: Operator) -> None:
    job = submit(operator, first_form(workers=workers(2)))
    job.wait("Running")
    operator.cluster.kubectl("scale", "ipujob/job", "--replicas=2")
    until(lambda: job.status.get("currentReplicas") == 2, SECONDS, lambda: operator.log[-3000:])
    launchers = {"job-launcher", "job-launcher-1"}
    assert set(job.pods()) == launchers | {f"job-worker-{number}" for number in range(4)}
    hostfiles = [operator.cluster.get("configmap", name)["data"]["hostfile"] for name in ("job-config", "job-config-1")]
    assert hostfiles == [
        "job-worker-0 slots=2\njob-worker-1 slots=2\n",
        "job-worker-2 slots=2\njob-worker-3 slots=2\n",
    ]
    assert operator.cluster.kubectl("get", "ipujob/job", "--output=jsonpath={.status.desiredReplicas}") == "2"
    job.end("job-launcher", 0)
    assert job.wait("Running")  # until both instances have ended
    job.end("job-launcher-1", 0)
    job.wait("Succeeded")


def test_a_job_without_instances_has_neither_pods_nor_ipus(operator: Operator) -> None:
    job = submit(operator, second_form(jobInstances=0))
    status = job.wait("Pending")
    assert (status["desiredReplicas"], job.pods(), partitions(operator)) == (0, {}, set())
    operator.cluster.kubectl("scale", "ipujob/job", "--replicas=1")
    job.wait("Running")
    operator.cluster.kubectl("scale", "ipujob/job", "--replicas=0")
    job.wait("Pending")
    until(lambda: not job.pods() and not partitions(operator), SECONDS, lambda: operator.log[-3000:])
    operator.cluster.kubectl("scale", "ipujob/job", "--replicas=1")
    assert job.wait("Running")["restartCount"] == 0


def test_jobs_with_the_same_published_partition_id(operator: Operator, cluster: Cluster) -> None:
    prefix, _, number = cluster.namespace.rpartition("-")
    other = replace(cluster, namespace=number)  # job x in test-1, and job x-test in 1
    other.create_namespace()
    operator.kill()
    operator.options = ("--watch-namespaces", f"{cluster.namespace},{number}")
    operator.start()
    first = submit(operator, first_form(), "x")
    first.wait("Running")
    second = submit(replace(operator, cluster=other), first_form(), f"x-{prefix}")
    second.wait("Running")
    published = f"p-x-{cluster.namespace}-0"
    ids = partitions(operator)
    assert len(ids) == 2 and published in ids
    [unique] = ids - {published}
    [worker] = [pod for name, pod in second.pods().items() if name.endswith("worker-0")]
    variables = {each["name"]: each.get("value") for each in worker["spec"]["containers"][0]["env"]}
    assert variables["IPUOF_VIPU_API_PARTITION_ID"] == unique
    first.delete()
    assert partitions(operator) == {unique}
    assert second.wait("Running")["restartCount"] == 0
    second.delete()
    assert partitions(operator) == set()


def test_an_interactive_session_ends_after_its_time(operator: Operator) -> None:
    job = submit(operator, first_form(launcher=None, interactive={"ttl": 60}))
    job.wait("Running")
    assert job.pods()["job-launcher"]["spec"]["containers"][0]["command"] == ["sleep", "60"]
    job.end("job-launcher", 0)  # as sleep ends
    assert job.wait("Succeeded")["completionTime"]


def test_a_waiting_job_has_no_pods(operator: Operator) -> None:
    first = submit(operator, first_form(modelReplicas="32"), "first")
    first.wait("Running")
    second = submit(operator, first_form(), "second")
    until(lambda: "Position 1" in second.status.get("lastMessage", ""), SECONDS)
    assert second.pods() == {}
    for kind in ("configmaps", "roles"):
        assert operator.cluster.get(kind, selector="graphcore.ai/ipujob=second")["items"] == []


def test_a_quota_of_ipus_leaves_jobs_pending(cluster: Cluster, operator: Operator) -> None:
    operator.kill()
    operator.options = ("--request-ipus",)
    operator.start()
    set_quota(cluster, 4)
    first = submit(operator, first_form(), "first")
    first.wait("Running")
    second = submit(operator, first_form(), "second")
    until(lambda: "exceeded quota" in second.status.get("lastMessage", ""), SECONDS, lambda: str(second.status))
    message = second.wait("Pending")["lastMessage"]
    assert "requested: requests.graphcore.ai/ipu=4, used: requests.graphcore.ai/ipu=4, limited: requests" in message
    until(lambda: partitions(operator) == {f"p-first-{cluster.namespace}-0"}, SECONDS)
    until(lambda: not second.pods(), SECONDS)
    assert "PodsDenied" in {reason for reason, _ in second.events()}
    set_quota(cluster, 8)
    second.wait("Running")


def set_quota(cluster: Cluster, ipus: int) -> None:
    """Limit the IPUs of a namespace."""
    limit(cluster, {"requests.graphcore.ai/ipu": str(ipus)})


def limit(cluster: Cluster, hard: dict[str, str]) -> None:
    """Limit the resources of a namespace, and wait until the limit applies."""
    metadata = {"name": "limit", "namespace": cluster.namespace}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})
    until(lambda: cluster.get("resourcequota", "limit").get("status", {}).get("hard") == hard, SECONDS)


def test_a_quota_of_memory_demands_resources_of_the_launcher(operator: Operator) -> None:
    limit(operator.cluster, {"limits.memory": "4Gi"})
    resources = {"limits": {"memory": "1Gi"}}
    template = workers(container={"resources": resources})
    denied = submit(operator, first_form(workers=template), "denied")
    text = 'Pods are denied: pods "denied-launcher" is forbidden: failed quota: limit: must specify limits.memory'
    until(lambda: text in denied.status.get("lastMessage", ""), SECONDS, lambda: str(denied.status))
    job = submit(operator, first_form(workers=template, launcher={"command": ["train"], "resources": resources}))
    job.wait("Running")
    used = operator.cluster.get("resourcequota", "limit")["status"]["used"]
    assert used == {"limits.memory": "2Gi"}


def test_kubectl_prints_what_the_published_transcripts_show(operator: Operator) -> None:
    cluster = operator.cluster
    created = cluster.kubectl("apply", "--filename", EXAMPLES / "single-gcd-sample.yaml")
    assert created == "ipujob.graphcore.ai/ipujob-sample created\n"
    RunningJob(operator, "ipujob-sample").wait("Running")
    printed = re.sub(r"\b\d+m?\d*s$", "40s", cluster.kubectl("get", "ipujobs.graphcore.ai"), flags=re.MULTILINE)
    assert printed == "NAME            STATUS    AGE\nipujob-sample   Running   40s\n"
    printed = cluster.kubectl("get", "pods", "--no-headers")
    rows = [line.split()[:4] for line in printed.splitlines()]
    assert rows == [[f"ipujob-sample-{each}", "1/1", "Running", "0"] for each in ("launcher", "worker-0")]


def test_explain_describes_the_workers(cluster: Cluster) -> None:
    text = cluster.kubectl("explain", "ipujob.spec.workers")
    assert paragraphs(text) == {
        "KIND": "IPUJob",
        "VERSION": "graphcore.ai/v1alpha1",
        "RESOURCE": "workers <Object>",
        "DESCRIPTION": "The pods that run the programs of the job.",
        "FIELDS": (
            "replicas <integer> Number of workers of each instance. "
            "strategy <string> How changed workers are replaced. Recreate, the default, stops all workers first. "
            "RollingUpdate replaces one instance after the other, and stops all workers of an instance, because they "
            "use its partition together. "
            "template <Object> -required- Template of the pods, as in Deployments. The operator adds the settings for "
            "IPUs and the environment variables of Poplar."
        ),
    }


def paragraphs(text: str) -> dict[str, Any]:
    """Return the parts of what 'kubectl explain' prints, each in one line."""
    found = re.split(r"^([A-Z]+):", text, flags=re.MULTILINE)[1:]
    return {title: " ".join(body.split()) for title, body in zip(found[::2], found[1::2], strict=True)}
