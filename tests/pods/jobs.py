# SPDX-License-Identifier: GPL-3.0-or-later
"""IPUJobs in real pods."""

from __future__ import annotations

from typing import Any

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import InProcess
from tests.kubernetes.cluster import Cluster
from tests.waiting import until
from tools.kubernetes.images import WORKER

SECONDS = 240.0  # busy machines are slow
PROGRAM = (
    'echo "rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE: $IPUOF_VIPU_API_PARTITION_ID'
    ' GCD $IPUOF_VIPU_API_GCD_ID offset $POPDIST_REPLICA_INDEX_OFFSET"'
)


def job(command: list[str], **spec: Any) -> dict[str, Any]:
    """Return a job with two workers of four IPUs and two replicas each."""
    container = {"name": "main", "image": WORKER, "imagePullPolicy": "Never"}
    return {
        "apiVersion": "graphcore.ai/v1alpha1",
        "kind": "IPUJob",
        "metadata": {"name": "job"},
        "spec": {
            "ipusPerJobInstance": "8",
            "workersPerJobInstance": "2",
            "modelReplicasPerWorker": "2",
            "launcher": {"command": command},
            "workers": {"template": {"spec": {"containers": [container]}}},
            **spec,
        },
    }


def mpirun(program: str) -> list[str]:
    """Return the command of a launcher that runs a shell command on all slots."""
    return ["mpirun", "--bind-to", "none", "--mca", "btl_tcp_if_include", "lo,node0,eth0", "sh", "-c", program]


def wait(cluster: Cluster, name: str, *states: str) -> dict[str, Any]:
    """Wait until a job has one of the states, and return it."""

    def found() -> dict[str, Any] | None:
        thing: dict[str, Any] = cluster.get("ipujob", name)
        return thing if (thing.get("status") or {}).get("launcherStatus") in states else None

    until(found, SECONDS, lambda: cluster.kubectl("describe", "ipujob,pods"))
    thing = found()
    assert thing is not None
    return thing


def delete(cluster: Cluster, kinds: str = "ipujobs") -> None:
    """Delete all objects of these kinds in the namespace, and wait until they are gone."""
    cluster.kubectl("delete", kinds, "--all", "--wait=false")
    left = kinds.split(",")
    until(
        lambda: not any(cluster.get(kind)["items"] for kind in left),
        SECONDS,
        lambda: cluster.kubectl("describe", kinds),
    )


def partitions(vipu: InProcess) -> set[str]:
    """Return the ids of all partitions."""
    return {each.id for each in vipu.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions}
