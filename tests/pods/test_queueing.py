# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract with queueing systems, with real pods: suspend, node selectors, resume."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import Cluster
from tests.pods.jobs import SECONDS, job, partitions, wait
from tests.waiting import until
from tools.kubernetes.site import NODE


@pytest.fixture
def flavor(cluster: Cluster) -> Iterator[dict[str, str]]:
    """Yield a node selector of the node."""
    cluster.kubectl("label", "node", NODE, "pool=a")
    yield {"pool": "a"}
    cluster.kubectl("label", "node", NODE, "pool-")


def patch(cluster: Cluster, suspend: bool, selector: Mapping[str, str]) -> None:
    """Suspend or resume the job, and change its node selector, as a queueing system does."""
    template = {"template": {"spec": {"nodeSelector": selector}}}
    change = json.dumps({"spec": {"suspend": suspend, "workers": template}})
    cluster.kubectl("patch", "ipujob", "job", "--type=merge", "--patch", change)


def pods(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the pods of the job."""
    found: list[dict[str, Any]] = cluster.get("pods", selector="graphcore.ai/ipujob=job")["items"]
    return found


def test_a_suspended_job_has_nothing_and_runs_where_the_queue_says(
    cluster: Cluster, vipu: InProcess, flavor: dict[str, str]
) -> None:
    cluster.create(job([], suspend=True, interactive={"ttl": 600}, launcher={}))
    wait(cluster, "job", "Suspended")
    assert (pods(cluster), partitions(vipu)) == ([], set())
    patch(cluster, True, flavor)
    patch(cluster, False, {})
    wait(cluster, "job", "Running")
    found = pods(cluster)
    assert len(found) == 3
    for each in found:
        assert each["spec"]["nodeSelector"] == {**flavor, "ipunode": "node1"}
        assert (each["spec"]["nodeName"], each["status"]["phase"]) == (NODE, "Running")
    assert partitions(vipu) == {f"p-job-{cluster.namespace}-0"}
    # The queue takes the quota back.
    patch(cluster, True, {})
    wait(cluster, "job", "Suspended")
    until(lambda: (pods(cluster), partitions(vipu)) == ([], set()), SECONDS, lambda: cluster.kubectl("get", "pods"))
    # No node has the next flavor.
    patch(cluster, False, {"pool": "b"})
    until(lambda: "PodNotStarting" in cluster.kubectl("describe", "ipujob", "job"), SECONDS)
    assert wait(cluster, "job", "Pending")["status"]["restartCount"] == 0
    assert not [each for each in pods(cluster) if each["spec"].get("nodeName")]
