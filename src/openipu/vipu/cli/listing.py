# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a controller by kind, as plain dictionaries."""

from __future__ import annotations

from typing import Any

from openipu.vipu.cli.session import Session

# service, method, request, list field of the reply; all but partitions are in the admin package
_CALLS = {
    "agent": ("admin", "ListAgents", "ListAgentsRequest", "agents"),
    "cluster": ("admin", "ListClusters", "ListClustersRequest", "clusters"),
    "allocation": ("tenant", "ListAllocations", "ListAllocationsRequest", "allocations"),
    "user": ("admin", "ListUsers", "ListUsersRequest", "users"),
    "partition": ("user", "ListPartitions", "ListPartitionsRequest", "partitions"),
}


def read(session: Session, kind: str, timeout: float = 0, **fields: Any) -> list[dict[str, Any]]:
    """Return all objects of a kind in the controller's order. Raises VipuError.

    ``timeout``: seconds, 0 for those of the session. ``fields``: of the request.
    """
    from openipu.shared.vipu import contract, objects

    service, method, request, field = _CALLS[kind]
    package = contract.virmgrpc if kind == "partition" else contract.admin
    reply = session.call(service, method, getattr(package, request)(**fields), timeout)
    return [getattr(objects, kind)(item) for item in getattr(reply, field)]


def ids(session: Session, kind: str, timeout: float = 0) -> list[str]:
    """Return the ids of all objects of a kind."""
    return [item["id"] for item in read(session, kind, timeout)]
