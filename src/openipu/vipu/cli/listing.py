# SPDX-License-Identifier: GPL-3.0-or-later
"""What a controller has, as plain objects, by kind."""

from __future__ import annotations

from typing import Any

from openipu.vipu.cli.session import Session

# service, method, request, the list in the reply; all but partitions are of the admin package
_CALLS = {
    "agent": ("admin", "ListAgents", "ListAgentsRequest", "agents"),
    "cluster": ("admin", "ListClusters", "ListClustersRequest", "clusters"),
    "allocation": ("tenant", "ListAllocations", "ListAllocationsRequest", "allocations"),
    "user": ("admin", "ListUsers", "ListUsersRequest", "users"),
    "partition": ("user", "ListPartitions", "ListPartitionsRequest", "partitions"),
}


def read(session: Session, kind: str, **fields: Any) -> list[dict[str, Any]]:
    """All objects of a kind in the controller's order; ``fields`` are of the request. Raises VipuError."""
    from ansible_collections.openipu.pod.plugins.module_utils.vipu import contract, objects

    service, method, request, field = _CALLS[kind]
    package = contract.virmgrpc if kind == "partition" else contract.admin
    reply = session.call(service, method, getattr(package, request)(**fields))
    return [getattr(objects, kind)(item) for item in getattr(reply, field)]


def ids(session: Session, kind: str) -> list[str]:
    """Their ids."""
    return [item["id"] for item in read(session, kind)]
