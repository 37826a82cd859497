# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion of API messages to plain objects, as modules return them and command lines print them as JSON."""

from __future__ import annotations

import datetime
import typing as t

from ..reconcile import Object
from .contract import admin, virmgrpc
from .names import (
    AGENT_STATE,
    ALL_ALLOCATIONS,
    CABLE_KIND,
    CLUSTER_TEST,
    CLUSTER_TOPOLOGY,
    EVENT_TYPE,
    KIND,
    OPERATION,
    READY,
    ROLE,
    TEST_FAILURE,
    TEST_RUN,
    TOPOLOGY,
)
from .partition_fields import PARTITION_FIELDS
from .ports import AGENT_PORT

# Fields of the request itself and not of the requirements in it.
_REQUEST_OPTIONS = tuple(field.name for field in PARTITION_FIELDS if not field.message)


def agent(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.Agent message as an object."""
    return {
        "id": item.spec.id,
        "host": item.spec.host,
        "port": item.spec.port or AGENT_PORT,
        "state": AGENT_STATE.text(item.state),
        "reason": item.reason or None,
        "cluster": item.cluster_id or None,
        "allocation": item.allocation_id or None,
        "versions": dict(sorted(item.versions.items())),
        "in_service": item.spec.service != admin.SERVICE_STATE_OUT_OF_SERVICE,
        "service_reason": item.spec.service_reason or None,
        **({"take_over": False} if item.rejects else {}),
    }


def drained(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.DrainedPartition message as an object."""
    return {
        "id": item.partition_id,
        "allocation": item.allocation_id,
        "users": list(item.user_ids),
        "moves": item.moves,
        "agents": list(item.agent_ids),
        "reason": item.reason or None,
    }


def cluster(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.Cluster message as an object."""
    return {
        "id": item.spec.id,
        "agents": list(item.spec.agent_ids),
        "num_ilds": item.spec.num_ilds or 1,
        "topology": TOPOLOGY.text(item.spec.ipu_link_topology or 1),
        "cluster_topology": CLUSTER_TOPOLOGY.text(item.spec.gw_link_topology or 1),
        "allocations": list(item.allocation_ids),
    }


def allocation(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.Allocation message as an object."""
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
    """Return a virmgrpc.Partition message as an object."""
    fields = {
        f.name: f.decode(getattr(item.spec, f.message)) for f in PARTITION_FIELDS if f.message not in ("", "size")
    }
    return {"id": item.id, "size": len(item.spec.ipus), **fields, "state": READY.text(item.ready_state)}


def partition_options(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.PartitionOptions message as an object without the id of the partition."""
    return {name: getattr(item, name) for name in _REQUEST_OPTIONS}


def user(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.UserSpec message as an object."""
    allocations = [ALL_ALLOCATIONS] if item.all_allocations else list(item.allocation_ids)
    return {"id": item.id, "role": ROLE.text(item.role or 1), "allocations": allocations}


def user_fields(desired: Object) -> dict[str, t.Any]:
    """Return the fields of an openipu.vipu.admin.v1.UserSpec message. Raises ValueError for an unknown role."""
    allocations = desired.get("allocations") or []
    every = allocations == [ALL_ALLOCATIONS]
    return {
        "id": desired["id"],
        "role": ROLE.number(desired.get("role")),
        "allocation_ids": [] if every else allocations,
        "all_allocations": every,
    }


def certificate(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.Certificate message as an object; ``valid_until`` is a date in UTC."""
    end = datetime.datetime.fromtimestamp(item.not_after_unix, datetime.UTC)
    return {
        "key": item.key,
        "serial": item.serial,
        "valid_until": end.strftime("%Y-%m-%d"),
        "revoked": item.revoked,
    }


def event(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.Event message as an object; ``object`` is None for a removed one.

    Agents have no state, reason and versions, because these are not records. Partitions have their options, status and
    errors besides the fields of lists.
    """
    kind = KIND.text(item.kind)
    found = None
    if item.WhichOneof("object") == "partition":
        record = item.partition
        progress = {name: value for name, value in status(record.status).items() if name not in ("id", "state")}
        found = {**partition(record.partition), **partition_options(record.options), **progress}
    elif item.WhichOneof("object"):
        found = {"agent": agent, "cluster": cluster, "allocation": allocation, "user": user}[kind](getattr(item, kind))
        for name in ("state", "reason", "versions") if kind == "agent" else ():
            del found[name]
    return {
        "type": EVENT_TYPE.text(item.type),
        "kind": kind,
        "id": item.id,
        "revision": item.revision,
        "object": found,
    }


def discovered(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.DiscoveredAgent message as an object; ``age`` is in seconds."""
    return {
        "host": item.host,
        "port": item.port,
        "interface": item.network_interface,
        "age": item.seconds_since_last_seen,
        "auto_add_id": item.auto_add_id,
        "agent": item.agent_id or None,
        "conflict": item.conflict or None,
    }


def status(item: t.Any) -> Object:
    """Return a virmgrpc.PartitionStatus message as an object."""
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
    """Return an openipu.vipu.admin.v1.ClusterTestRun message as an object.

    Times are in seconds since 1970, or None.
    """
    return {
        "state": TEST_RUN.text(item.state),
        "run_id": item.run_id or None,
        "cluster": item.cluster.id or None,
        "agents": list(item.cluster.agent_ids),
        "num_ilds": item.cluster.num_ilds or 1,
        "topology": TOPOLOGY.text(item.cluster.ipu_link_topology or 1),
        "ok": item.ok,
        "requested": [CLUSTER_TEST.text(test) for test in item.requested],
        "running": CLUSTER_TEST.text(item.running) or None,
        "error": item.error or None,
        "started": item.started_unix or None,
        "ended": item.ended_unix or None,
        "results": [test_result(result) for result in item.results],
    }


def test_result(item: t.Any) -> Object:
    """Return an openipu.vipu.admin.v1.TestResult message as an object; ``duration`` is in seconds."""
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


def partition_creation(desired: Object) -> dict[str, t.Any]:
    """Return the fields of a message that creates the desired partition.

    They are those of virmgrpc.CreatePartitionRequest and of openipu.vipu.admin.v1.PartitionSpec. Raises
    ValueError for an unknown choice or a number out of range.
    """
    fields = {f.message: f.encode(desired.get(f.name)) for f in PARTITION_FIELDS if f.message}
    requirements = virmgrpc.PartitionRequirements(id=desired["id"], **fields)
    return {"requirements": requirements, **partition_request_options(desired)}


def partition_request_options(desired: Object) -> dict[str, bool]:
    """Return the options of a partition that requests carry besides its requirements."""
    return {name: bool(desired.get(name)) for name in _REQUEST_OPTIONS}
