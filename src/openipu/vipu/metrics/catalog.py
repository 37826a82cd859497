# SPDX-License-Identifier: GPL-3.0-or-later
"""Catalog of all metrics: their names, types, labels and meanings. No I/O.

Instruments, collectors and docs/reference/metrics.md are generated from this table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


class Type(enum.StrEnum):
    """Types of metrics."""

    COUNTER = "counter"  # only grows, until its process restarts
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"  # always 1; the labels have the values


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric. ``name`` has the form of queries: with ``_total`` or ``_info``, without ``_bucket``."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def family(self) -> str:
        """Name for the client library, without a type suffix."""
        return self.name.removesuffix({Type.COUNTER: "_total", Type.INFO: "_info"}.get(self.type, ""))


# Seconds. Calls take a millisecond or two; the configuration of IPUs takes many seconds.
_CALL = (0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
_COMMIT = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5)
_OPERATION = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


def _table(*rows: tuple[str, str, str] | tuple[str, str, str, tuple[float, ...]]) -> Mapping[str, Metric]:
    """Return metrics from rows of ``name{label,label}``, type, help and buckets."""
    metrics = {}
    for signature, type, help, *buckets in rows:
        name, _, labels = signature.rstrip("}").partition("{")
        metrics[name] = Metric(name, Type(type), tuple(labels.split(",")) if labels else (), help, *buckets)
    return metrics


CONTROLLER = _table(
    ("vipu_build_info{version}", "info", "Running release."),
    ("vipu_records{kind}", "gauge", "Objects in the database, by kind: agent, cluster, allocation, partition, user."),
    # Agents
    ("vipu_agents{state}", "gauge", "Registered agents by state: up, down, unknown (not reached yet)."),
    ("vipu_agent_up{agent}", "gauge", "Whether an agent is up: 1 or 0."),
    (
        "vipu_agent_info{agent,host,port,cluster,allocation}",
        "info",
        "Address of an agent, and cluster and allocation of its IPU-Machine; empty for none.",
    ),
    (
        "vipu_agent_losses_total{agent}",
        "counter",
        "Changes of an agent from up to down.",
    ),
    (
        "vipu_agent_in_service{agent}",
        "gauge",
        "1 for an agent that is in service, 0 for one that receives no new partitions.",
    ),
    (
        "vipu_agent_quarantined_ipus{agent}",
        "gauge",
        "IPUs of an agent in quarantine: shares that the records do not explain.",
    ),
    (
        "vipu_agent_request_duration_seconds{method,code}",
        "histogram",
        "Duration of calls to agents that change partitions, of all agents, by method and gRPC status code.",
        _OPERATION,
    ),
    ("vipu_discovered_agents", "gauge", "Agents that announce themselves by multicast; 0 without discovery."),
    # Clusters and allocations
    ("vipu_cluster_ipus{cluster}", "gauge", "IPUs of a cluster."),
    ("vipu_cluster_allocated_ipus{cluster}", "gauge", "IPUs of a cluster that are in allocations."),
    ("vipu_cluster_used_ipus{cluster}", "gauge", "IPUs of a cluster that are in partitions."),
    ("vipu_cluster_unreachable_ipus{cluster}", "gauge", "IPUs of a cluster whose agents are not up."),
    ("vipu_allocation_ipus{cluster,allocation}", "gauge", "IPUs of an allocation."),
    ("vipu_allocation_used_ipus{cluster,allocation}", "gauge", "IPUs of an allocation that are in partitions."),
    ("vipu_allocation_free_ipus{cluster,allocation}", "gauge", "IPUs of an allocation for new partitions."),
    (
        "vipu_allocation_out_of_service_ipus{cluster,allocation}",
        "gauge",
        "IPUs of an allocation that are in no partition, on machines out of service.",
    ),
    (
        "vipu_allocation_unreachable_ipus{cluster,allocation}",
        "gauge",
        "IPUs of an allocation whose agents are not up, used or free.",
    ),
    (
        "vipu_allocation_largest_partition_ipus{cluster,allocation}",
        "gauge",
        "IPUs of the largest partition that fits, as if all agents were up. Less than the free IPUs when these "
        "are fragmented.",
    ),
    ("vipu_allocation_partitions{cluster,allocation}", "gauge", "Partitions of an allocation."),
    # Partitions
    ("vipu_partitions{state}", "gauge", "Partitions by state: active, pending, error."),
    (
        "vipu_partition_operations{operation}",
        "gauge",
        "Partitions by operation of the controller: idle, creating, resetting, removing, failed, unreachable.",
    ),
    (
        "vipu_partition_operation_age_seconds{operation}",
        "gauge",
        "Age of the oldest operation in progress (creating, resetting, removing); 0 for none. A restart of the "
        "controller resets it.",
    ),
    (
        "vipu_partition_error{partition,cluster,allocation}",
        "gauge",
        "1 for each partition in error; absent for others.",
    ),
    (
        "vipu_partition_operation_duration_seconds{operation,outcome}",
        "histogram",
        "Time from a durable request to its completion on all machines, by operation (creating, resetting, removing) "
        "and outcome (ok, failed).",
        _OPERATION,
    ),
    ("vipu_partition_losses_total", "counter", "Active partitions that lost a machine or an IPU."),
    ("vipu_partition_auto_resets_total", "counter", "Automatic resets of partitions, including those that moved."),
    ("vipu_partition_moves_total", "counter", "Automatic moves of partitions to other IPUs."),
    # Calls of clients
    (
        "vipu_rpc_handled_total{service,method,code}",
        "counter",
        "Calls of clients, by gRPC service, method and status code; without health and reflection.",
    ),
    ("vipu_rpc_duration_seconds{service,method}", "histogram", "Duration of these calls in the controller.", _CALL),
    ("vipu_watch_streams", "gauge", "Open streams of Watch."),
    ("vipu_watch_events_total", "counter", "Events sent to the streams of Watch."),
    # Certificates of users
    (
        "vipu_user_certificates{state}",
        "gauge",
        "Users by state of their certificate that expires last: valid, expiring (within 14 days), expired, none. "
        "Revoked certificates do not count.",
    ),
    # Store
    (
        "vipu_store_commit_duration_seconds",
        "histogram",
        "Duration of transactions from the first statement until they are on disk.",
        _COMMIT,
    ),
    ("vipu_store_commit_failures_total", "counter", "Transactions that could not be written; they changed nothing."),
    ("vipu_store_changes_total", "counter", "Records written or deleted."),
    (
        "vipu_store_revision",
        "gauge",
        "Revision of the records, which grows by one with each transaction.",
    ),
    ("vipu_store_waiting_commands", "gauge", "Commands that wait for the writer now."),
    ("vipu_store_size_bytes{file}", "gauge", "Size of the database on disk: file is database or wal (not merged yet)."),
    # Several controllers on one store
    ("vipu_controller_leads", "gauge", "Whether this controller leads: 1 or 0. Absent without --store."),
    ("vipu_controller_leader_info{address}", "info", "Leader that this controller knows, with its address for users."),
    ("vipu_controller_leader_changes_total", "counter", "New leaders since the start of this controller."),
    (
        "vipu_follower_revision",
        "gauge",
        "Revision of the records of a follower. The difference to that of the leader is its lag.",
    ),
    ("vipu_follower_silence_seconds", "gauge", "Time since the last response of etcd to a follower."),
    # Cluster tests
    ("vipu_cluster_test_running{cluster}", "gauge", "Whether a cluster is under test: 1 or 0."),
    (
        "vipu_cluster_test_runs_total{cluster,outcome}",
        "counter",
        "Test runs that ended, by outcome: passed, failed, stopped, aborted.",
    ),
    (
        "vipu_cluster_test_last_run_timestamp_seconds{cluster}",
        "gauge",
        "End of the last run of a cluster, in seconds since 1970; absent before the first one.",
    ),
    (
        "vipu_cluster_test_ok{cluster,test}",
        "gauge",
        "Whether the last run of a test on a cluster passed: 1 or 0; absent when it has not run.",
    ),
    (
        "vipu_cluster_test_checks{cluster,test}",
        "gauge",
        "Checks of the last run of a test: cables, links, machines.",
    ),
    ("vipu_cluster_test_checks_passed{cluster,test}", "gauge", "Checks that passed in that run."),
    (
        "vipu_cluster_test_failures{cluster,test,kind}",
        "gauge",
        "Failures found by the last run of a test, by kind (no_cable, wrong_port, no_sync, link_down, "
        "corrected_errors, version, pfc_classes, agent_unreachable); absent for kinds without failures.",
    ),
    ("vipu_cluster_test_duration_seconds{cluster,test}", "gauge", "Duration of the last run of a test."),
)

MACHINE = _table(
    ("ipum_build_info{version}", "info", "Running release of the agent."),
    ("ipum_start_time_seconds", "gauge", "Start of the agent, in seconds since 1970."),
    ("ipum_controllers", "gauge", "Controllers that watch this agent now."),
    (
        "ipum_hardware_up",
        "gauge",
        "Whether the hardware of the machine responded in time: 1 or 0. At 0, the metrics from "
        "ipum_hardware_answer_seconds to ipum_rnic_pfc_classes are absent.",
    ),
    ("ipum_hardware_answer_seconds", "gauge", "Time that the hardware took to respond to this scrape."),
    ("ipum_machine_info{serial,part,platform}", "info", "Board serial number, part number and platform."),
    ("ipum_component_info{component,version}", "info", "Version of each component of firmware and software."),
    ("ipum_partitions", "gauge", "Partitions with IPUs of this machine."),
    ("ipum_ipu_info{ipu,chip,board,firmware}", "info", "Chip id, board serial number and firmware of an IPU."),
    ("ipum_ipu_ready{ipu}", "gauge", "Whether an IPU is ready: 1 or 0."),
    ("ipum_ipu_in_use{ipu}", "gauge", "Whether an IPU is in a partition: 1 or 0."),
    (
        "ipum_ipu_temperature_celsius{ipu,sensor}",
        "gauge",
        "Average temperature of the sensors of one type: die, board.",
    ),
    ("ipum_ipu_power_watts{ipu}", "gauge", "Power consumption of an IPU."),
    ("ipum_ipu_clock_hertz{ipu}", "gauge", "Clock frequency of an IPU."),
    ("ipum_ipu_utilisation_ratio{ipu}", "gauge", "Utilisation of an IPU, 0 to 1."),
    (
        "ipum_link_up{link,kind}",
        "gauge",
        "Whether a link is up: 1 or 0. Link: 5 (IPU-Link port), gw1, internal0; kind: ipu_link, gw_link, internal.",
    ),
    (
        "ipum_link_corrected_errors_total{link,kind}",
        "counter",
        "Errors corrected by a link since the start of the machine.",
    ),
    (
        "ipum_port_cabled{kind,port}",
        "gauge",
        "Whether a cable is in a chassis port: 1 or 0. Kind: ipu_link, gw_link, sync_link.",
    ),
    ("ipum_rnic_pfc_classes{interface}", "gauge", "Classes with priority flow control on an interface of the RNIC."),
    ("ipum_ipu_faults_total{ipu}", "counter", "Failures of an IPU that was in a partition."),
    (
        "ipum_rpc_handled_total{service,method,code}",
        "counter",
        "Calls of controllers, by gRPC service, method and status code.",
    ),
    (
        "ipum_rpc_duration_seconds{service,method}",
        "histogram",
        "Duration of these calls in the agent, without streams.",
        _CALL,
    ),
)

# Exported by the client library for both programs.
PROCESS = _table(
    ("process_cpu_seconds_total", "counter", "CPU time of the process, user and system."),
    ("process_resident_memory_bytes", "gauge", "Resident memory of the process."),
    ("process_virtual_memory_bytes", "gauge", "Virtual memory of the process."),
    ("process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970."),
    ("process_open_fds", "gauge", "Open files and connections of the process."),
    ("process_max_fds", "gauge", "Limit of open files and connections."),
)


def table(metrics: Iterable[Metric]) -> str:
    """Return a Markdown table for docs/reference/metrics.md."""
    rows = [
        f"| `{metric.name}` | {metric.type} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.help} |"
        for metric in metrics
    ]
    return "\n".join(["| name | type | labels | meaning |", "| --- | --- | --- | --- |", *rows]) + "\n"
