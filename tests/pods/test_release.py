# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart with real pods: its programs, its webhooks behind a Service, the published REST calls, and plain pods."""

from __future__ import annotations

import json
import re

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.releases import Release
from tests.pods.test_jobs import SECONDS, job, mpirun, partitions, wait
from tests.waiting import until
from tools.kubernetes.images import WORKER

PROXY = "gc-ipu-operator-vipu-proxy.ipu"  # Service and namespace


def pod(ipus: str, command: str) -> dict[str, object]:
    """Return a plain pod with IPUs."""
    container = {"name": "main", "image": WORKER, "imagePullPolicy": "Never", "command": ["sh", "-c", command]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "annotations": {"graphcore.ai/ipu": ipus}},
        "spec": {"nodeSelector": {"ipunode": "node1"}, "restartPolicy": "Never", "containers": [container]},
    }


def test_the_programs_run_in_pods(release: Release) -> None:
    lines = release.cluster.kubectl("get", "pods", "--no-headers").splitlines()
    running = [line.split()[:3] for line in lines if "Completed" not in line]
    names = [re.sub(r"-[0-9a-f]+-\w+$", "", name) for name, _, _ in running]
    assert sorted(names) == ["gc-ipu-operator-controller-manager", "gc-ipu-operator-vipu-proxy"]
    assert {(ready, state) for _, ready, state in running} == {("1/1", "Running")}


def test_the_checks_of_the_chart_pass(release: Release) -> None:
    assert "Phase:          Succeeded" in release.helm("test", release.name, "--timeout", "120s")


def test_the_webhook_rejects_bad_jobs_with_one_sentence(cluster: Cluster) -> None:
    bad = job(mpirun("true"), ipusPerJobInstance="3")
    assert "the size of a partition is a power of two" in cluster.rejection(bad)


def test_statistics_and_queries_from_a_pod(cluster: Cluster, vipu: InProcess) -> None:
    free = 32 - 4 * len(vipu.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions)
    assert free == 32, partitions(vipu)
    cluster.create(job(mpirun("cat"), ipusPerJobInstance="4", interactive={"ttl": 600}, launcher={}))
    wait(cluster, "job", "Running")
    run = ["exec", "job-worker-0", "--", "curl", "--silent", "--show-error", "--fail"]
    usage = {"used": 4, "available": 28}
    until(
        lambda: (
            json.loads(cluster.kubectl(*run, f"http://{PROXY}/stats")) == {cluster.namespace: usage, "total": usage}
        ),
        SECONDS,
        lambda: cluster.kubectl(*run, f"http://{PROXY}/stats"),
    )
    post = [*run, "--request", "POST", "--header", "Content-Type: application/json", f"http://{PROXY}/query"]
    two = json.loads(cluster.kubectl(*post, "--data", '{"size":2}'))
    assert two == {"available": True, "numOfPartitions": 14, "message": ""}
    large = json.loads(cluster.kubectl(*post, "--data", '{"size":64}'))
    assert (large["numOfPartitions"], large["available"]) == (0, True)
    cluster.kubectl("delete", "ipujob", "job", "--timeout=60s")


def test_a_plain_pod_receives_ipus_and_releases_them(cluster: Cluster, vipu: InProcess) -> None:
    cluster.create(pod("2", "cat $IPUOF_CONFIG_PATH"))
    until(
        lambda: cluster.get("pod", "plain")["status"]["phase"] in ("Succeeded", "Failed"),
        SECONDS,
        lambda: cluster.kubectl("describe", "pod", "plain"),
    )
    configuration = json.loads(cluster.kubectl("logs", "plain", "--container=main"))
    assert len(configuration["devices"]) == 2
    until(lambda: not any(cluster.namespace in each for each in partitions(vipu)), SECONDS)
