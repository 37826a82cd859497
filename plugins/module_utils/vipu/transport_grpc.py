# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way over gRPC: our admin API in one batch call, partitions over the public API as well."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, ItemError, Object, Step
from . import ipuof
from .client import Client, Connection, VipuError, partition_status
from .contract import admin, virmgrpc
from .names import (
    AGENT_STATE,
    CLUSTER_TOPOLOGY,
    GW_ROUTING,
    KIND,
    OPERATION,
    READY,
    ROLE,
    ROUTING,
    SYNC_TYPE,
    TOPOLOGY,
)

# Only an administrator may apply batches, and a controller of Graphcore's knows none; both still
# take partitions one by one.
_NO_BATCHES = ("UNIMPLEMENTED", "PERMISSION_DENIED")


class GrpcTransport:
    """See transport.Transport."""

    def __init__(self, connection: Connection) -> None:
        self._client = Client(connection)
        self._access_keys: dict[str, str] = {}

    def close(self) -> None:
        self._client.close()

    def version(self) -> str:
        reply = self._client.call(self._client.version.GetVersion, virmgrpc.VersionRequest(), "get its version")
        return str(reply.version)

    def read(self, kind: str) -> list[Object]:
        client = self._client
        if kind == "agent":
            reply = client.call(client.admin.ListAgents, admin.ListAgentsRequest(), "list agents")
            return [_agent(item) for item in reply.agents]
        if kind == "cluster":
            reply = client.call(client.admin.ListClusters, admin.ListClustersRequest(), "list clusters")
            return [_cluster(item) for item in reply.clusters]
        if kind == "allocation":
            reply = client.call(client.tenant.ListAllocations, admin.ListAllocationsRequest(), "list allocations")
            return [_allocation(item) for item in reply.allocations]
        if kind == "user":
            reply = client.call(client.admin.ListUsers, admin.ListUsersRequest(), "list users")
            return [
                {"id": item.id, "role": ROLE.text(item.role or 1), "allocations": list(item.allocation_ids)}
                for item in reply.users
            ]
        reply = client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest(), "list partitions")
        return [_partition(item) for item in reply.partitions]

    def write(self, steps: list[Step], force: bool) -> list[ItemError]:
        partitions_only = all(step.family.kind == "partition" for step in steps)
        if partitions_only and len(steps) == 1:
            return self._write_partitions(steps, force)
        try:
            return self._apply(steps, force)
        except VipuError as error:
            if partitions_only and error.code in _NO_BATCHES:
                return self._write_partitions(steps, force)
            raise

    def _apply(self, steps: list[Step], force: bool) -> list[ItemError]:
        request = admin.ApplyRequest()
        for step in steps:
            kind = KIND.number(step.family.kind)
            if step.action in (Action.DELETE, Action.RECREATE):
                request.removals.add(kind=kind, id=step.key, force=force)
            if step.wanted is not None:
                _ADD[step.family.kind](request, step.wanted)
        reply = self._client.call(self._client.admin.Apply, request, "apply the batch")
        self._access_keys.update(reply.access_keys)
        errors = [
            ItemError(KIND.text(result.kind), result.id, result.error)
            for result in reply.results
            if result.outcome == admin.OUTCOME_FAILED
        ]
        if errors:  # nothing was applied; say so of everything
            errors += [ItemError(step.family.kind, step.key, errors[0].sentence) for step in steps]
            errors = list({(e.kind, e.key): e for e in reversed(errors)}.values())[::-1]
        return errors

    def _write_partitions(self, steps: list[Step], force: bool) -> list[ItemError]:
        user, errors = self._client.user, []
        for step in steps:
            try:
                if step.action in (Action.DELETE, Action.RECREATE):
                    removal = virmgrpc.RemovePartitionRequest(partition_id=step.key, force=force)
                    self._client.call(user.RemovePartition, removal, "remove partition '%s'" % step.key)
                if step.wanted is not None:
                    creation = virmgrpc.CreatePartitionRequest(
                        requirements=_requirements(step.wanted),
                        disable_auto_reset=bool(step.wanted.get("disable_auto_reset")),
                        relocatable=bool(step.wanted.get("relocatable")),
                    )
                    self._client.call(user.CreatePartition, creation, "create partition '%s'" % step.key)
            except VipuError as error:
                errors.append(ItemError("partition", step.key, error.sentence))
        return errors

    def partition_status(self, id: str) -> Object:
        status = partition_status(self._client, id)
        last = status.last_auto_reset_time
        return {
            "id": id,
            "state": READY.text(status.ready_state),
            "operation": OPERATION.text(status.operation_state),
            "errors": list(status.errors),
            "max_retries": status.max_auto_reset_retries,
            "retries": status.auto_reset_retry_count,
            "last_auto_reset": last.ToJsonString() if last.seconds else None,
        }

    def reset_partition(self, id: str, relocatable: bool) -> None:
        request = virmgrpc.ResetPartitionRequest(partition_id=id, relocatable=relocatable)
        self._client.call(self._client.user.ResetPartition, request, "reset partition '%s'" % id)

    def ipuof_config(self, id: str) -> list[Object]:
        request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id=id)
        action = "get the IPUoF configuration of partition '%s'" % id
        reply = self._client.call(self._client.user.GetPartitionIpuofConfig, request, action)
        return [ipuof.gcd_config(gcd) for gcd in reply.ipuof_config.gcd_configs]

    def fits(self, allocation: str, sizes: list[int]) -> dict[int, int]:
        request = admin.CountFitsRequest(allocation_id=allocation, sizes=sizes)
        reply = self._client.call(self._client.tenant.CountFits, request, "count what fits in '%s'" % allocation)
        return {fit.size: fit.count for fit in reply.fits}

    def discovered(self) -> list[Object]:
        request = admin.ListDiscoveredAgentsRequest()
        reply = self._client.call(self._client.admin.ListDiscoveredAgents, request, "list discovered agents")
        return [
            {
                "host": item.host,
                "port": item.port,
                "interface": item.network_interface,
                "age": item.seconds_since_last_seen,
                "auto_add_id": item.auto_add_id,
                "agent": item.agent_id or None,
            }
            for item in reply.agents
        ]

    def access_key(self, user: str) -> str | None:
        return self._access_keys.get(user)


def _agent(item: t.Any) -> Object:
    return {
        "id": item.spec.id,
        "host": item.spec.host,
        "port": item.spec.port or 8080,
        "state": AGENT_STATE.text(item.state),
        "reason": item.reason or None,
        "cluster": item.cluster_id or None,
        "allocation": item.allocation_id or None,
    }


def _cluster(item: t.Any) -> Object:
    return {
        "id": item.spec.id,
        "agents": list(item.spec.agent_ids),
        "num_ilds": item.spec.num_ilds or 1,
        "topology": TOPOLOGY.text(item.spec.ipu_link_topology or 1),
        "cluster_topology": CLUSTER_TOPOLOGY.text(item.spec.gw_link_topology or 1),
        "allocations": list(item.allocation_ids),
    }


def _allocation(item: t.Any) -> Object:
    return {
        "id": item.spec.id,
        "cluster": item.spec.cluster_id,
        "size": item.spec.size,
        "agents": list(item.spec.agent_ids),
        "partitions": list(item.partition_ids),
        "free_ipus": item.free_ipus,
        "free_machines": list(item.free_machines),
    }


def _partition(item: t.Any) -> Object:
    spec = item.spec
    return {
        "id": item.id,
        "allocation": spec.allocation_id,
        "cluster": spec.cluster_id,
        "size": len(spec.ipus),
        "num_gcds": spec.num_gcds,
        "num_replicas": spec.num_replicas,
        "num_segments": spec.num_ipulink_segments,
        "routing": ROUTING.text(spec.ipulink_routing_type),
        "gw_routing": GW_ROUTING.text(spec.gw_routing_type) or None,
        "sync_type": SYNC_TYPE.text(spec.sync_type),
        "reconfigurable": spec.reconfigurable,
        "ipus": [
            {
                "ild": ipu.ipulink_domain_topology_id,
                "topology_id": ipu.topology_id,
                "ild_routing_id": ipu.ipulink_domain_routing_id,
                "routing_id": ipu.routing_id,
            }
            for ipu in spec.ipus
        ],
        "state": READY.text(item.ready_state),
    }


def _requirements(wanted: Object) -> t.Any:
    requirements = virmgrpc.PartitionRequirements(
        id=wanted["id"],
        size=wanted.get("size") or 0,
        allocation_id=wanted.get("allocation") or "",
        cluster_id=wanted.get("cluster") or "",
        num_gcds=wanted.get("num_gcds") or 0,
        num_replicas=wanted.get("num_replicas") or 0,
        num_ipulink_segments=wanted.get("num_segments") or 0,
        ipulink_routing_type=ROUTING.number(wanted.get("routing")),
        gw_routing_type=GW_ROUTING.number(wanted.get("gw_routing")),
        sync_type=SYNC_TYPE.number(wanted.get("sync_type")),
        reconfigurable=bool(wanted.get("reconfigurable")),
    )
    for ipu in wanted.get("ipus") or ():
        requirements.ipus.add(
            ipulink_domain_topology_id=ipu["ild"],
            ipulink_domain_routing_id=ipu["ild_routing_id"],
            topology_id=ipu["topology_id"],
            routing_id=ipu["routing_id"],
        )
    return requirements


def _add_partition(request: t.Any, wanted: Object) -> None:
    request.partitions.add(
        requirements=_requirements(wanted),
        disable_auto_reset=bool(wanted.get("disable_auto_reset")),
        relocatable=bool(wanted.get("relocatable")),
    )


_ADD: dict[str, t.Callable[[t.Any, Object], t.Any]] = {
    "agent": lambda request, wanted: request.agents.add(
        id=wanted["id"], host=wanted.get("host") or "", port=wanted.get("port") or 0
    ),
    "cluster": lambda request, wanted: request.clusters.add(
        id=wanted["id"],
        agent_ids=wanted.get("agents") or (),
        num_ilds=wanted.get("num_ilds") or 0,
        ipu_link_topology=TOPOLOGY.number(wanted.get("topology")),
        gw_link_topology=CLUSTER_TOPOLOGY.number(wanted.get("cluster_topology")),
    ),
    "allocation": lambda request, wanted: request.allocations.add(
        id=wanted["id"],
        cluster_id=wanted.get("cluster") or "",
        size=wanted.get("size") or 0,
        agent_ids=wanted.get("agents") or (),
    ),
    "partition": _add_partition,
    "user": lambda request, wanted: request.users.add(
        id=wanted["id"], role=ROLE.number(wanted.get("role")), allocation_ids=wanted.get("allocations") or ()
    ),
}
