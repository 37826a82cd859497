# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The messages of the APIs as plain objects, the way modules return them and command lines print them as JSON."""

from __future__ import annotations

import typing as t

from ..reconcile import Object
from .contract import virmgrpc
from .names import (
    AGENT_STATE,
    CABLE_KIND,
    CLUSTER_TEST,
    CLUSTER_TOPOLOGY,
    GW_ROUTING,
    OPERATION,
    READY,
    ROLE,
    ROUTING,
    SYNC_TYPE,
    TEST_FAILURE,
    TEST_RUN,
    TOPOLOGY,
)


def agent(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.Agent message."""
    return {
        "id": item.spec.id,
        "host": item.spec.host,
        "port": item.spec.port or 8080,
        "state": AGENT_STATE.text(item.state),
        "reason": item.reason or None,
        "cluster": item.cluster_id or None,
        "allocation": item.allocation_id or None,
        "versions": dict(sorted(item.versions.items())),
    }


def cluster(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.Cluster message."""
    return {
        "id": item.spec.id,
        "agents": list(item.spec.agent_ids),
        "num_ilds": item.spec.num_ilds or 1,
        "topology": TOPOLOGY.text(item.spec.ipu_link_topology or 1),
        "cluster_topology": CLUSTER_TOPOLOGY.text(item.spec.gw_link_topology or 1),
        "allocations": list(item.allocation_ids),
    }


def allocation(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.Allocation message."""
    return {
        "id": item.spec.id,
        "cluster": item.spec.cluster_id,
        "size": item.spec.size,
        "agents": list(item.spec.agent_ids),
        "partitions": list(item.partition_ids),
        "free_ipus": item.free_ipus,
        "free_machines": list(item.free_machines),
    }


def partition(item: t.Any) -> Object:
    """A virmgrpc.Partition message."""
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


# What the public API takes when a partition is created, and never tells.
PARTITION_OPTIONS = ("disable_auto_reset", "relocatable")


def partition_options(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.PartitionOptions message, without the partition's name."""
    return {name: getattr(item, name) for name in PARTITION_OPTIONS}


def user(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.UserSpec message."""
    return {"id": item.id, "role": ROLE.text(item.role or 1), "allocations": list(item.allocation_ids)}


def discovered(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.DiscoveredAgent message; ``age`` in seconds."""
    return {
        "host": item.host,
        "port": item.port,
        "interface": item.network_interface,
        "age": item.seconds_since_last_seen,
        "auto_add_id": item.auto_add_id,
        "agent": item.agent_id or None,
    }


def status(item: t.Any) -> Object:
    """A virmgrpc.PartitionStatus message."""
    last = item.last_auto_reset_time
    return {
        "id": item.partition_id,
        "state": READY.text(item.ready_state),
        "operation": OPERATION.text(item.operation_state),
        "errors": list(item.errors),
        "max_retries": item.max_auto_reset_retries,
        "retries": item.auto_reset_retry_count,
        "last_auto_reset": last.ToJsonString() if last.seconds else None,
    }


def test_run(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.ClusterTestRun message; times are seconds since 1970, None when there is none."""
    return {
        "state": TEST_RUN.text(item.state),
        "run_id": item.run_id or None,
        "cluster": item.cluster.id or None,
        "agents": list(item.cluster.agent_ids),
        "num_ilds": item.cluster.num_ilds or 1,
        "topology": TOPOLOGY.text(item.cluster.ipu_link_topology or 1),
        "ok": item.ok,
        "asked": [CLUSTER_TEST.text(test) for test in item.asked],
        "running": CLUSTER_TEST.text(item.running) or None,
        "error": item.error or None,
        "started": item.started_unix or None,
        "ended": item.ended_unix or None,
        "results": [test_result(result) for result in item.results],
    }


def test_result(item: t.Any) -> Object:
    """An openipu.vipu.admin.v1.TestResult message; ``duration`` in seconds."""
    return {
        "test": CLUSTER_TEST.text(item.test),
        "duration": round(item.duration_seconds, 6),
        "passed": item.passed,
        "total": item.total,
        "ok": item.ok,
        "summary": list(item.summary),
        "skipped": item.skipped,
        "skipped_because": CLUSTER_TEST.text(item.skipped_because) or None,
        "disturbs": list(item.disturbs),
        "failures": [_test_failure(failure) for failure in item.failures],
        "versions": {each.component: dict(sorted(each.versions.items())) for each in item.versions},
    }


def _test_failure(item: t.Any) -> Object:
    def port(name: str) -> Object | None:
        end = getattr(item, name)
        if not item.HasField(name):
            return None
        return {"agent": end.agent_id, "kind": CABLE_KIND.text(end.kind), "port": end.port}

    return {
        "kind": TEST_FAILURE.text(item.kind),
        "reason": item.reason,
        "a": port("a"),
        "b": port("b"),
        "found": port("found"),
        "found_b": port("found_b"),
        "empty": item.empty,
        "empty_b": item.empty_b,
        "agent": item.agent_id or None,
        "link": item.link or None,
        "corrected_errors": item.corrected_errors or None,
        "traffic_test": item.traffic_test or None,
        "component": item.component or None,
        "versions": dict(sorted(item.versions.items())),
    }


def requirements(wanted: Object) -> t.Any:
    """The virmgrpc.PartitionRequirements message of a wanted partition; ValueError for an unknown choice."""
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
