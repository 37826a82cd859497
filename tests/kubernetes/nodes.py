# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that exist at the API server only, for the scheduler. They run no pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from openipu.kubernetes.cluster.client import NODES, Object, open_client
from tests.kubernetes.cluster import Cluster

_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "100"}


@dataclass(frozen=True)
class ApiNode:
    """A node that is ready."""

    cluster: Cluster
    name: str

    @property
    def thing(self) -> Any:
        return self.cluster.get("node", self.name)

    @property
    def ipus(self) -> tuple[str | None, str | None]:
        """Extended resource in capacity and allocatable."""
        status = self.thing["status"]
        return tuple(status[each].get("graphcore.ai/ipu") for each in ("capacity", "allocatable"))

    def label(self, *labels: str) -> None:
        """Set or remove labels, as ``kubectl label`` does."""
        self.cluster.kubectl("label", "node", self.name, "--overwrite", *labels)

    def patch_status(self, status: Object) -> None:
        """Merge fields into the status. kubectl 1.20 cannot write sub-resources."""

        async def patch() -> None:
            async with await open_client(str(self.cluster.kubeconfig)) as client:
                await client.patch(NODES, "", self.name, {"status": status}, "status")

        asyncio.run(patch())


@contextmanager
def api_node(cluster: Cluster, name: str, **labels: str) -> Iterator[ApiNode]:
    """Create a ready node, and delete it at the end."""
    node = ApiNode(cluster, f"{cluster.namespace}-{name}")
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name, "labels": labels}})
    try:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        node.patch_status({"capacity": _CAPACITY, "allocatable": _CAPACITY, "conditions": [ready]})
        yield node
    finally:
        cluster.kubectl("delete", "node", node.name)


def pod(cluster: Cluster, name: str, ipus: int = 0, **spec: Any) -> dict[str, Any]:
    """Return a pod that requests IPUs as an extended resource."""
    limits = {"limits": {"graphcore.ai/ipu": str(ipus)}} if ipus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": cluster.namespace},
        "spec": {"containers": [{"name": "main", "image": "image", "resources": limits}], **spec},
    }


def node_of(cluster: Cluster, name: str) -> str:
    """Return the node to which a pod was scheduled, empty for none."""
    found: str = cluster.get("pod", name)["spec"].get("nodeName", "")
    return found


def obstacle(cluster: Cluster, name: str) -> str:
    """Return why a pod was not scheduled, empty if the scheduler has not tried."""
    conditions = cluster.get("pod", name)["status"].get("conditions") or []
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")
