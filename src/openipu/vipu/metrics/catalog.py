# SPDX-License-Identifier: GPL-3.0-or-later
"""Every metric that is told: its name, type, labels and meaning. The one home of all four; no I/O.

Instruments and collectors are made from this table, and docs/metrics.md is written from it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


class Type(enum.StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"  # only grows, until its process starts anew
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"  # always 1: its labels are what it tells


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``name`` is as queries write it: with ``_total`` or ``_info``, without ``_bucket``."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def family(self) -> str:
        """The name as the client library wants it."""
        return self.name.removesuffix({Type.COUNTER: "_total", Type.INFO: "_info"}.get(self.type, ""))


# Seconds. Calls are answered within a millisecond or two; bringing IPUs up takes many seconds.
_CALL = (0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
_COMMIT = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5)
_OPERATION = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


def _table(*rows: tuple[str, str, str] | tuple[str, str, str, tuple[float, ...]]) -> Mapping[str, Metric]:
    """Metrics from rows: ``name{label,label}``, type, help, buckets."""
    metrics = {}
    for signature, type, help, *buckets in rows:
        name, _, labels = signature.rstrip("}").partition("{")
        metrics[name] = Metric(name, Type(type), tuple(labels.split(",")) if labels else (), help, *buckets)
    return metrics


CONTROLLER = _table(
    ("vipu_build_info{version}", "info", "The release that runs."),
    ("vipu_records{kind}", "gauge", "Objects in the database, by kind: agent, cluster, allocation, partition, user."),
    # Agents
    ("vipu_agents{state}", "gauge", "Registered agents by state: up, down, unknown (not reached yet)."),
    ("vipu_agent_up{agent}", "gauge", "Whether the controller reaches an agent: 1 or 0."),
    (
        "vipu_agent_info{agent,host,port,cluster,allocation}",
        "info",
        "Where an agent is, and to which cluster and allocation its IPU-Machine belongs; empty for none.",
    ),
    (
        "vipu_agent_losses_total{agent}",
        "counter",
        "How often an agent that was up did not answer any more.",
    ),
    (
        "vipu_agent_request_duration_seconds{method,code}",
        "histogram",
        "Calls of the controller to all agents that change partitions, by method and gRPC status code.",
        _OPERATION,
    ),
    ("vipu_discovered_agents", "gauge", "Agents that tell of themselves by multicast; 0 without discovery."),
    # Clusters and allocations
    ("vipu_cluster_ipus{cluster}", "gauge", "IPUs of a cluster."),
    ("vipu_cluster_allocated_ipus{cluster}", "gauge", "IPUs of a cluster that are in allocations."),
    ("vipu_cluster_used_ipus{cluster}", "gauge", "IPUs of a cluster that are in partitions."),
    ("vipu_cluster_unreachable_ipus{cluster}", "gauge", "IPUs of a cluster whose agents are not up."),
    ("vipu_allocation_ipus{cluster,allocation}", "gauge", "IPUs of an allocation."),
    ("vipu_allocation_used_ipus{cluster,allocation}", "gauge", "IPUs of an allocation that are in partitions."),
    ("vipu_allocation_free_ipus{cluster,allocation}", "gauge", "IPUs of an allocation that are in no partition."),
    (
        "vipu_allocation_unreachable_ipus{cluster,allocation}",
        "gauge",
        "IPUs of an allocation whose agents are not up, be they used or free.",
    ),
    (
        "vipu_allocation_largest_partition_ipus{cluster,allocation}",
        "gauge",
        "IPUs of the largest partition that still fits, as if all agents were up: less than are free when those "
        "are scattered.",
    ),
    ("vipu_allocation_partitions{cluster,allocation}", "gauge", "Partitions of an allocation."),
    # Partitions
    ("vipu_partitions{state}", "gauge", "Partitions by state: active, pending, error."),
    (
        "vipu_partition_operations{operation}",
        "gauge",
        "Partitions by what the controller does to them: idle, creating, resetting, removing, failed.",
    ),
    (
        "vipu_partition_operation_age_seconds{operation}",
        "gauge",
        "How long the oldest of them has lasted, by operation (creating, resetting, removing); 0 for none. It begins "
        "anew with the controller.",
    ),
    (
        "vipu_partition_error{partition,cluster,allocation}",
        "gauge",
        "1 for each partition in error, as long as it is; there is no such series for others.",
    ),
    (
        "vipu_partition_operation_duration_seconds{operation,outcome}",
        "histogram",
        "From a durable request to its end on all machines, by operation (creating, resetting, removing) and outcome "
        "(ok, failed).",
        _OPERATION,
    ),
    ("vipu_partition_losses_total", "counter", "Active partitions that lost a machine or an IPU."),
    ("vipu_partition_auto_resets_total", "counter", "Partitions that were reset by themselves, those that moved too."),
    ("vipu_partition_moves_total", "counter", "Partitions that moved by themselves to other IPUs."),
    # Calls of clients
    (
        "vipu_rpc_handled_total{service,method,code}",
        "counter",
        "Calls of clients that were answered, by gRPC service, method and status code; not of health and reflection.",
    ),
    ("vipu_rpc_duration_seconds{service,method}", "histogram", "How long such calls took in the controller.", _CALL),
    # Store
    (
        "vipu_store_commit_duration_seconds",
        "histogram",
        "Transactions that were written: from the first statement until they were on disk.",
        _COMMIT,
    ),
    ("vipu_store_commit_failures_total", "counter", "Transactions that could not be written; nothing changed then."),
    ("vipu_store_changes_total", "counter", "Records that were written or deleted."),
    ("vipu_store_waiting_commands", "gauge", "Commands that wait for the writer now."),
    ("vipu_store_size_bytes{file}", "gauge", "Size of the database on disk: file is database or wal (not merged yet)."),
    # Cluster tests
    ("vipu_cluster_test_running{cluster}", "gauge", "Whether a cluster is being tested: 1 or 0."),
    (
        "vipu_cluster_test_runs_total{cluster,outcome}",
        "counter",
        "Test runs that ended, by outcome: passed, failed, stopped, aborted.",
    ),
    (
        "vipu_cluster_test_last_run_timestamp_seconds{cluster}",
        "gauge",
        "When the last run of a cluster ended, in seconds since 1970; absent before the first one.",
    ),
    (
        "vipu_cluster_test_ok{cluster,test}",
        "gauge",
        "Whether a test found nothing wrong when it ran last on a cluster: 1 or 0; absent when it has not run.",
    ),
    (
        "vipu_cluster_test_checks{cluster,test}",
        "gauge",
        "What a test looked at when it ran last: cables, links, machines.",
    ),
    ("vipu_cluster_test_checks_passed{cluster,test}", "gauge", "How many of those were good."),
    (
        "vipu_cluster_test_failures{cluster,test,kind}",
        "gauge",
        "What a test found wrong when it ran last, by kind (no_cable, wrong_port, no_sync, link_down, "
        "corrected_errors, version, pfc_classes, agent_unreachable); absent for kinds that were not found.",
    ),
    ("vipu_cluster_test_duration_seconds{cluster,test}", "gauge", "How long a test took when it ran last."),
)

MACHINE = _table(
    ("ipum_build_info{version}", "info", "The release of the agent that runs."),
    ("ipum_start_time_seconds", "gauge", "When the agent began, in seconds since 1970."),
    ("ipum_controllers", "gauge", "Controllers that watch this agent now."),
    (
        "ipum_hardware_up",
        "gauge",
        "Whether the machine behind the agent answered in time: 1 or 0. With 0 there is none of the metrics from "
        "ipum_hardware_answer_seconds to ipum_rnic_pfc_classes.",
    ),
    ("ipum_hardware_answer_seconds", "gauge", "How long the machine took to answer this time."),
    ("ipum_machine_info{serial,part,platform}", "info", "Board serial number, part number and platform."),
    ("ipum_component_info{component,version}", "info", "Version of each component of firmware and software."),
    ("ipum_partitions", "gauge", "Partitions that have IPUs here."),
    ("ipum_ipu_info{ipu,chip,board,firmware}", "info", "Chip id, board serial number and firmware of an IPU."),
    ("ipum_ipu_ready{ipu}", "gauge", "Whether an IPU is well: 1 or 0."),
    ("ipum_ipu_in_use{ipu}", "gauge", "Whether an IPU is in a partition: 1 or 0."),
    ("ipum_ipu_temperature_celsius{ipu,sensor}", "gauge", "Temperature, average of a sort of sensors: die, board."),
    ("ipum_ipu_power_watts{ipu}", "gauge", "Power that an IPU takes."),
    ("ipum_ipu_clock_hertz{ipu}", "gauge", "Clock of an IPU."),
    ("ipum_ipu_utilisation_ratio{ipu}", "gauge", "How busy an IPU is, 0 to 1."),
    (
        "ipum_link_up{link,kind}",
        "gauge",
        "Whether a link is up: 1 or 0. Link: 5 (IPU-Link port), gw1, internal0; kind: ipu_link, gw_link, internal.",
    ),
    (
        "ipum_link_corrected_errors_total{link,kind}",
        "counter",
        "Errors that a link has corrected since the machine started.",
    ),
    (
        "ipum_port_cabled{kind,port}",
        "gauge",
        "Whether a cable is in a chassis port: 1 or 0. Kind: ipu_link, gw_link, sync_link.",
    ),
    ("ipum_rnic_pfc_classes{interface}", "gauge", "Classes with priority flow control on an interface of the RNIC."),
    ("ipum_ipu_faults_total{ipu}", "counter", "How often an IPU failed under a partition."),
    (
        "ipum_rpc_handled_total{service,method,code}",
        "counter",
        "Calls of controllers that were answered, by gRPC service, method and status code.",
    ),
    (
        "ipum_rpc_duration_seconds{service,method}",
        "histogram",
        "How long such calls took in the agent; not of streams.",
        _CALL,
    ),
)

# Of the client library, for both.
PROCESS = _table(
    ("process_cpu_seconds_total", "counter", "CPU time of the process, user and system."),
    ("process_resident_memory_bytes", "gauge", "Memory of the process."),
    ("process_virtual_memory_bytes", "gauge", "Its virtual memory."),
    ("process_start_time_seconds", "gauge", "When it began, in seconds since 1970."),
    ("process_open_fds", "gauge", "Files and connections that it has open."),
    ("process_max_fds", "gauge", "How many it may have open."),
)


def table(metrics: Iterable[Metric]) -> str:
    """A table for docs/metrics.md."""
    rows = [
        f"| `{metric.name}` | {metric.type} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |"
        for metric in metrics
    ]
    return "\n".join(["| name | type | labels | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"
