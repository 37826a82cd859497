# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of a ``vipu-server`` process with real agents."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.server.initialise import initialise
from openipu.vipu.tls import issue
from tests.integration.scraping import Scrape, check
from tests.integration.vipu_servers import Client, InProcess, Machines, Process, partition, pod, run, wait_active
from tests.ports import free_port
from tests.waiting import until

HOST = f"127.84.{os.getpid() % 250 + 1}.1"
USER, ADMIN = "virmgrpc.UserService", "openipu.vipu.admin.v1.AdminService"


@pytest.fixture
def port() -> int:
    """Return a free port."""
    return free_port(HOST)


def options(port: int) -> tuple[str, ...]:
    return "--metrics-host", HOST, "--metrics-port", str(port)


def url(port: int) -> str:
    return f"http://{HOST}:{port}/metrics"


def rejected(call: Callable[[], object]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as error:
        call()
    code: grpc.StatusCode = error.value.code()
    return code


def test_metrics_of_a_busy_controller(vipu_process: Callable[..., Process], machines: Machines, port: int) -> None:
    server = vipu_process(*options(port))
    check(url(port), CONTROLLER)
    pod(server, machines, {"a1": 30, "a2": 2})
    for number in range(4):
        server.user.CreatePartition(partition(f"p{number}", 16))
    assert rejected(lambda: server.user.CreatePartition(partition("p0", 1))) is grpc.StatusCode.ALREADY_EXISTS
    for number in range(4):
        wait_active(server, f"p{number}")
    server.user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="p3"))
    written = 32 + 1 + 2 + 4 * 2 + 2  # the POD; partitions that become active; one removal, whose deletion is pending
    until(lambda: (Scrape(url(port)).get("vipu_store_changes_total") or 0) >= written)
    scrape = check(url(port), CONTROLLER)

    create = {"service": USER, "method": "CreatePartition"}
    assert scrape.get("vipu_rpc_handled_total", **create, code="OK") == 4
    assert scrape.get("vipu_rpc_handled_total", **create, code="ALREADY_EXISTS") == 1
    assert scrape.get("vipu_rpc_duration_seconds_count", **create) == 5
    assert 0 < scrape.sum("vipu_rpc_duration_seconds_sum", **create) < 60
    assert scrape.get("vipu_rpc_handled_total", service=ADMIN, method="Apply", code="OK") == 1
    assert scrape.get("vipu_records", kind="agent") == 32
    assert scrape.get("vipu_agents", state="up") == 32
    assert scrape.get("vipu_partitions", state="active") == 3
    assert scrape.get("vipu_allocation_used_ipus", cluster="cl0", allocation="a1") == 48
    assert scrape.get("vipu_allocation_free_ipus", cluster="cl0", allocation="a2") == 8
    durations = "vipu_partition_operation_duration_seconds_count"
    assert scrape.get(durations, operation="creating", outcome="ok") == 4
    assert scrape.get(durations, operation="removing", outcome="ok") == 1
    assert scrape.sum("vipu_agent_request_duration_seconds_count", method="Configure", code="OK") >= 4
    commits = scrape.get("vipu_store_commit_duration_seconds_count")
    changes = scrape.get("vipu_store_changes_total")
    assert changes
    assert commits and 0 < commits <= changes
    assert scrape.get("vipu_store_commit_failures_total") == 0
    assert scrape.get("vipu_store_waiting_commands") == 0
    assert scrape.sum("vipu_store_size_bytes") > 10_000

    # Scrapes write no records.
    server.user.ListPartitions(virmgrpc.ListPartitionsRequest())
    assert Scrape(url(port)).get("vipu_store_commit_duration_seconds_count") == commits
    assert server.stop() == 0


def test_a_lost_machine(vipu_process: Callable[..., Process], port: int) -> None:
    lost = Machines(2)
    try:
        server = vipu_process(*options(port))
        pod(server, lost)
        server.user.CreatePartition(partition("p", 8))
        wait_active(server, "p")
    finally:
        lost.stop()
    scrape = until(lambda: (found := Scrape(url(port))).get("vipu_agents", state="down") == 2 and found)
    assert scrape.get("vipu_agent_up", agent="ag01") == 0
    assert scrape.get("vipu_agent_losses_total", agent="ag02") == 1
    assert scrape.get("vipu_cluster_unreachable_ipus", cluster="cl0") == 8
    # Another thread counts the loss, shortly after the record is written.
    scrape = until(lambda: (found := Scrape(url(port))).get("vipu_partition_losses_total") == 1 and found)
    assert scrape.get("vipu_partitions", state="error") == 1
    assert scrape.all("vipu_partition_error") == [({"partition": "p", "cluster": "cl0", "allocation": "a1"}, 1)]
    check(url(port), CONTROLLER)


def test_metrics_of_cluster_tests(vipu_process: Callable[..., Process], port: int) -> None:
    rack = Machines(3)
    try:
        server = vipu_process(*options(port))
        pod(server, rack)
        rack.wiring.unplug(rack.wiring.place("ag01:5"))
        run_tests(server)
        scrape = check(url(port), CONTROLLER)
        assert scrape.get("vipu_cluster_test_ok", cluster="cl0", test="Cabling") == 0
        assert scrape.get("vipu_cluster_test_failures", cluster="cl0", test="Cabling", kind="no_cable") == 1
        assert scrape.get("vipu_cluster_test_ok", cluster="cl0", test="Version") == 1
        assert scrape.get("vipu_cluster_test_ok", cluster="cl0", test="Traffic") is None  # skipped
        assert scrape.get("vipu_cluster_test_runs_total", cluster="cl0", outcome="failed") == 1
        rack.wiring.plug(rack.wiring.place("ag01:5"))
        run_tests(server)
        scrape = check(url(port), CONTROLLER)
        assert {value for _, value in scrape.all("vipu_cluster_test_ok")} == {1}
        assert len(scrape.all("vipu_cluster_test_ok")) == 5  # this cluster has no GW-Links
        assert scrape.all("vipu_cluster_test_failures") == []
        assert scrape.get("vipu_cluster_test_runs_total", cluster="cl0", outcome="passed") == 1
        assert scrape.get("vipu_cluster_test_running", cluster="cl0") == 0
    finally:
        rack.stop()


def test_results_of_removed_clusters_are_not_kept(vipu_server: Callable[..., InProcess]) -> None:
    rack = Machines(2)
    try:
        server = vipu_server()
        for _ in range(2):
            pod(server, rack)
            run_tests(server)
            assert set(server.life.cluster_test_results()) == {"cl0"}
            server.admin.RemoveCluster(admin.RemoveRequest(id="cl0", force=True), timeout=10)
            until(lambda: not server.life.cluster_test_results())
    finally:
        rack.stop()


def run_tests(server: Client) -> None:
    server.admin.StartClusterTest(admin.StartClusterTestRequest(cluster_id="cl0"))
    until(lambda: server.admin.GetClusterTest(admin.GetClusterTestRequest()).run.ended_unix)


def test_a_port_in_use(port: int, tmp_path: Path) -> None:
    database = tmp_path / "vipu-server.db"
    initialise(database)
    with socket.create_server((HOST, port)):
        done = run("--database", str(database), "--port", "0", *options(port))
    assert done.returncode == 1
    assert done.stderr == (
        f"Error OPU615: Cannot serve metrics on {HOST}:{port}: the port is in use, or this machine does not have the "
        "address. Change --metrics-host or --metrics-port.\n"
    )


def test_metrics_contain_no_secrets(vipu_process: Callable[..., Process], port: int, tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    issue.create(certs, ["127.0.0.1", HOST])
    files = {name: (certs / "client" / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")}
    credentials = grpc.ssl_channel_credentials(files["ca.crt"], files["client.key"], files["client.crt"])
    server = vipu_process("--secure", "--certs", str(certs), *options(port), channel=credentials)
    metadata = (("x-user-id", "mallory"), ("x-access-key", "guessed-key"))
    assert rejected(lambda: server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), metadata=metadata)) in (
        grpc.StatusCode.UNAUTHENTICATED,
    )
    scrape = check(url(port), CONTROLLER)
    assert scrape.get("vipu_rpc_handled_total", service=USER, method="ListPartitions", code="UNAUTHENTICATED") == 1
    values = {
        value for family in scrape.families.values() for sample in family.samples for value in sample.labels.values()
    }
    assert not {"mallory", "guessed-key"} & values
