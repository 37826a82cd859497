# SPDX-License-Identifier: GPL-3.0-or-later
"""Transcripts of the published documentation, with the published example in real pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import EXAMPLES, Cluster
from tests.kubernetes.releases import Release
from tests.pods.conftest import install
from tests.pods.jobs import SECONDS, delete, partitions, wait
from tests.pods.transcripts import expected, masked
from tests.waiting import until
from tools.kubernetes.images import WORKER
from tools.kubernetes.site import NODE

SAMPLE = EXAMPLES / "single-gcd-sample.yaml"
PARTITION = "p-ipujob-sample-default-0"
CURL = "curl --silent --show-error --fail"


@pytest.fixture(scope="module")
def default(node: Cluster, release: Release, vipu: InProcess) -> Iterator[Cluster]:
    """Yield the namespace ``default`` with the running example."""
    found = replace(node, namespace="default")
    assert found.kubectl("apply", "--filename", SAMPLE) == "ipujob.graphcore.ai/ipujob-sample created\n"
    wait(found, "ipujob-sample", "Running")
    until(lambda: "rank 0" in found.run("logs", "ipujob-sample-launcher").stdout, SECONDS)
    yield found
    delete(found)
    assert PARTITION not in partitions(vipu)


@pytest.fixture(scope="module")
def client(release: Release) -> Iterator[Cluster]:
    """Yield the namespace of the release with a pod ``client`` that has curl, and may read metrics."""
    found = release.cluster
    found.kubectl("create", "serviceaccount", "prometheus")
    container = {"name": "main", "image": WORKER, "imagePullPolicy": "Never"}
    spec = {"serviceAccountName": "prometheus", "containers": [container], "terminationGracePeriodSeconds": 1}
    found.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client"}, "spec": spec})
    found.kubectl("wait", "pod/client", "--for=condition=Ready", "--timeout=50s")
    yield found
    found.kubectl("delete", "pod/client", "serviceaccount/prometheus")


def in_pod(cluster: Cluster, script: str) -> str:
    """Run a script in the pod ``client`` and return its output."""
    return cluster.kubectl("exec", "client", "--", "sh", "-c", script)


def pod_name(cluster: Cluster, component: str) -> str:
    """Return the name of the running pod of a program of the release."""
    lines = cluster.kubectl("get", "pods", "--no-headers").splitlines()
    [name] = [line.split()[0] for line in lines if component in line and "Running" in line]
    return name


def test_the_custom_resource_is_listed(default: Cluster) -> None:
    printed = default.kubectl("get", "crd", "ipujobs.graphcore.ai")
    assert masked(printed) == "NAME CREATED AT\nipujobs.graphcore.ai TIME"


def test_the_release_is_listed(release: Release) -> None:
    header, line = release.helm("ls").splitlines()
    assert header.split() == ["NAME", "NAMESPACE", "REVISION", "UPDATED", "STATUS", "CHART", "APP", "VERSION"]
    name, namespace, revision, *_, status, chart, version = line.split()
    assert (name, namespace, status) == ("gc", "ipu", "deployed")
    assert revision.isdigit()
    assert chart == f"ipu-operator-{version.removeprefix('v')}"


def test_the_programs_of_the_release_run(release: Release) -> None:
    printed = release.cluster.kubectl("get", "pods", "--selector=app.kubernetes.io/component!=admission")
    lines = [line for line in masked(printed).splitlines() if not line.startswith("client ")]
    assert "\n".join(lines) == expected("programs")


def test_the_pods_of_a_job_are_listed(default: Cluster) -> None:
    assert masked(default.kubectl("get", "pods")) == expected("pods")


def test_jobs_are_listed(default: Cluster) -> None:
    assert masked(default.kubectl("get", "ipujobs.graphcore.ai")) == "NAME STATUS AGE\nipujob-sample Running AGE"


def test_a_job_is_described(default: Cluster) -> None:
    assert masked(default.kubectl("describe", "ipujobs.graphcore.ai", "ipujob-sample")) == expected("describe")


def test_logs_of_a_job(default: Cluster) -> None:
    printed = default.kubectl("logs", "ipujob-sample-launcher", "-n", "default")
    variables = f"IPUOF_VIPU_API_PARTITION_ID={PARTITION} IPUOF_VIPU_API_GCD_ID=0 POPDIST_NUM_TOTAL_REPLICAS=4"
    assert printed == f"rank 0 on {NODE}: {variables}\n"
    assert default.kubectl("logs", "ipujob-sample-worker-0", "-n", "default") == ""  # it sleeps


def test_logs_of_the_programs_name_the_job(default: Cluster, release: Release) -> None:
    found = release.cluster
    manager = found.kubectl("logs", pod_name(found, "controller-manager"), "-n", found.namespace)
    events = [line for line in manager.splitlines() if "default/ipujob-sample" in line]
    for reason in ("IPUJobPending", "PodsCreated", "IPUJobRunning"):
        assert any(reason in line for line in events), manager
    proxy = found.kubectl("logs", pod_name(found, "vipu-proxy"), "-n", found.namespace)
    assert any(PARTITION in line and "default/ipujob-sample" in line for line in proxy.splitlines()), proxy


def test_statistics_as_printed(default: Cluster, client: Cluster) -> None:
    command = f"{CURL} gc-ipu-operator-vipu-proxy/stats | jq ."
    until(lambda: in_pod(client, command).strip() == expected("stats"), SECONDS, lambda: in_pod(client, command))


@pytest.mark.parametrize(("size", "name"), [(2, "query-2"), (64, "query-64")])
def test_queries_as_printed(default: Cluster, client: Cluster, size: int, name: str) -> None:
    header = '-H "Content-Type: application/json"'
    data = json.dumps({"size": size}, separators=(",", ":"))
    command = f"{CURL} --request POST {header} --data '{data}' gc-ipu-operator-vipu-proxy/query | jq ."
    until(lambda: in_pod(client, command).strip() == expected(name), SECONDS, lambda: in_pod(client, command))


def test_metrics_need_the_published_cluster_role(client: Cluster) -> None:
    printed = client.kubectl("get", "clusterrole", "-l", "component=metrics-reader")
    assert masked(printed) == "NAME CREATED AT\ngc-metrics-reader TIME"
    address = client.get("pod", pod_name(client, "controller-manager"))["status"]["podIP"]
    token = "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
    scrape = f'curl --silent --insecure --header "Authorization: Bearer {token}" https://{address}:8443/metrics'
    status = f"{scrape} --output /dev/null --write-out '%{{http_code}}'"
    assert in_pod(client, status) == "403"
    account = f"--serviceaccount={client.namespace}:prometheus"
    created = client.kubectl("create", "clusterrolebinding", "metrics", "--clusterrole=gc-metrics-reader", account)
    assert created == "clusterrolebinding.rbac.authorization.k8s.io/metrics created\n"
    try:
        until(lambda: in_pod(client, status) == "200", SECONDS)
        assert 'ipu_operator_jobs{state="running"}' in in_pod(client, scrape)
    finally:
        client.kubectl("delete", "clusterrolebinding", "metrics")


def test_a_job_is_scaled(default: Cluster, vipu: InProcess) -> None:
    printed = default.kubectl("scale", "ipujob", "ipujob-sample", "--replicas=2")
    assert printed == "ipujob.graphcore.ai/ipujob-sample scaled\n"
    listed = ["get", "pods", "--no-headers"]
    until(lambda: masked(default.kubectl(*listed)) == expected("scaled"), SECONDS, lambda: default.kubectl(*listed))
    second = "p-ipujob-sample-default-1"
    assert {PARTITION, second} <= partitions(vipu)
    columns = "custom-columns=D:.status.desiredReplicas,C:.status.currentReplicas"
    until(lambda: default.kubectl("get", "ipujobs", "-o", columns).split()[2:] == ["2", "2"], SECONDS)
    default.kubectl("scale", "ipujob", "ipujob-sample", "--replicas=1")
    until(lambda: second not in partitions(vipu), SECONDS, lambda: default.kubectl("describe", "ipujobs"))
    until(lambda: masked(default.kubectl("get", "pods")) == expected("pods"), SECONDS)


def test_jobs_and_their_tracker_outlive_the_release(default: Cluster, release: Release, vipu: InProcess) -> None:
    assert release.helm("uninstall", "gc") == 'release "gc" uninstalled\n'
    tracker = release.cluster.get("configmap", "ipu-partitions-tracker")
    assert PARTITION in json.dumps(tracker["data"])
    assert masked(default.kubectl("get", "pods")) == expected("pods")
    install(release)
    wait(default, "ipujob-sample", "Running")
    assert PARTITION in partitions(vipu)
    default.kubectl("exec", "ipujob-sample-worker-0", "--", "touch", "/tmp/finish")
    wait(default, "ipujob-sample", "Succeeded")
