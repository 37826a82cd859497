# SPDX-License-Identifier: GPL-3.0-or-later
"""The chart with real pods: its checks, its webhooks behind a Service, and plain pods."""

from __future__ import annotations

import json

from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.releases import Release
from tests.pods.jobs import SECONDS, job, mpirun, partitions
from tests.waiting import until
from tools.kubernetes.images import WORKER


def pod(ipus: str, command: str) -> dict[str, object]:
    """Return a plain pod with IPUs."""
    container = {"name": "main", "image": WORKER, "imagePullPolicy": "Never", "command": ["sh", "-c", command]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "annotations": {"graphcore.ai/ipu": ipus}},
        "spec": {"nodeSelector": {"ipunode": "node1"}, "restartPolicy": "Never", "containers": [container]},
    }


def test_the_checks_of_the_chart_pass(release: Release) -> None:
    assert "Phase:          Succeeded" in release.helm("test", release.name, "--timeout", "120s")


def test_the_webhook_rejects_bad_jobs_with_one_sentence(cluster: Cluster) -> None:
    bad = job(mpirun("true"), ipusPerJobInstance="3")
    assert "the size of a partition is a power of two" in cluster.rejection(bad)


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
