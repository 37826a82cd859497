# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way over gRPC: our admin API in one batch call, partitions over the public API as well."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, ItemError, Object, Step
from . import ipuof, objects
from .client import Client, Connection, VipuError, partition_status
from .contract import admin, virmgrpc
from .names import CLUSTER_TOPOLOGY, KIND, ROLE, TOPOLOGY

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
            return [objects.agent(item) for item in reply.agents]
        if kind == "cluster":
            reply = client.call(client.admin.ListClusters, admin.ListClustersRequest(), "list clusters")
            return [objects.cluster(item) for item in reply.clusters]
        if kind == "allocation":
            reply = client.call(client.tenant.ListAllocations, admin.ListAllocationsRequest(), "list allocations")
            return [objects.allocation(item) for item in reply.allocations]
        if kind == "user":
            reply = client.call(client.admin.ListUsers, admin.ListUsersRequest(), "list users")
            return [objects.user(item) for item in reply.users]
        reply = client.call(client.user.ListPartitions, virmgrpc.ListPartitionsRequest(), "list partitions")
        return [objects.partition(item) for item in reply.partitions]

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
                        requirements=objects.requirements(step.wanted),
                        disable_auto_reset=bool(step.wanted.get("disable_auto_reset")),
                        relocatable=bool(step.wanted.get("relocatable")),
                    )
                    self._client.call(user.CreatePartition, creation, "create partition '%s'" % step.key)
            except VipuError as error:
                errors.append(ItemError("partition", step.key, error.sentence))
        return errors

    def partition_status(self, id: str) -> Object:
        return objects.status(partition_status(self._client, id))

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
        return [objects.discovered(item) for item in reply.agents]

    def access_key(self, user: str) -> str | None:
        return self._access_keys.get(user)


def _add_partition(request: t.Any, wanted: Object) -> None:
    request.partitions.add(
        requirements=objects.requirements(wanted),
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
