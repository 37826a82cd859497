# SPDX-License-Identifier: GPL-3.0-or-later
"""Many jobs on a hollow node beside the node with real pods, with the installed release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.hollow import HollowNode
from tests.pods.jobs import SECONDS, delete, job, mpirun, partitions, wait
from tests.waiting import until
from tools.kubernetes.site import NODE

JOBS = 16  # with one IPU and two pods each
NAME, LABELS = "hollow", {"ipunode": "node1", "pool": "hollow"}


@pytest.fixture
def hollow(cluster: Cluster) -> Iterator[HollowNode]:
    """Yield a node without processes, for jobs that select it."""
    made = HollowNode(cluster.kubeconfig, name=NAME, labels=LABELS)
    made.start()
    yield made
    delete(cluster)  # while the node can end their pods
    made.stop()


def on_node(name: str, pool: str) -> dict[str, Any]:
    """Return a job with one worker and one IPU on the nodes of a pool."""
    made = job(mpirun("true"), ipusPerJobInstance="1", workersPerJobInstance="1", modelReplicasPerWorker="1")
    made["metadata"]["name"] = name
    made["spec"]["workers"]["template"]["spec"]["nodeSelector"] = {"pool": pool}
    return made


def test_many_jobs_run_beside_a_real_one(cluster: Cluster, vipu: InProcess, hollow: HollowNode) -> None:
    names = [f"job-{number}" for number in range(JOBS)]
    cluster.create(*(on_node(each, "hollow") for each in names))

    def states() -> set[str]:
        return {(each.get("status") or {}).get("launcherStatus", "") for each in cluster.get("ipujobs")["items"]}

    until(lambda: states() == {"Running"}, SECONDS, lambda: cluster.kubectl("get", "ipujobs,pods", "--output=wide"))
    assert {f"p-{each}-{cluster.namespace}-0" for each in names} <= partitions(vipu)
    assert {each["spec"]["nodeName"] for each in cluster.get("pods")["items"]} == {hollow.name}
    cluster.kubectl("label", "node", NODE, "pool=real")
    try:
        cluster.create(on_node("real", "real"))
        found = wait(cluster, "real", "Succeeded", "Failed")
        assert found["status"]["launcherStatus"] == "Succeeded", cluster.kubectl("logs", "real-launcher")
        assert cluster.get("pod", "real-worker-0")["spec"]["nodeName"] == NODE
    finally:
        cluster.kubectl("label", "node", NODE, "pool-")
