# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster tests with real agents: operations during a run, lost agents, stopped controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu import objects
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.twin.machine.reports import VERSIONS
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.server.initialise import initialise
from tests.integration.agents.agents_support import RackProcess
from tests.integration.vipu_servers import InProcess, Process
from tests.waiting import until

SLOW = 20.0  # seconds; with this heartbeat a hanging machine does not go Down during a test
QUICK = 0.3


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RackProcess]:
    rack = RackProcess(tmp_path_factory.mktemp("rack"), 8)
    yield rack
    rack.close()


@pytest.fixture
def make_server(tmp_path: Path, rack: RackProcess) -> Iterator[Callable[[float], InProcess]]:
    servers: list[InProcess] = []

    def make(heartbeat: float) -> InProcess:
        servers.append(InProcess(tmp_path / "vipu.db", lifecycle=LifecycleOptions(heartbeat=heartbeat)))
        apply(servers[-1], rack)
        return servers[-1]

    rack.stop_machines()
    rack.start_machines()
    yield make
    for server in servers:
        server.stop()


def apply(server: InProcess | Process, rack: RackProcess) -> None:
    agents = [admin.AgentSpec(id=agent.id, host=agent.host, port=agent.port, take_over=True) for agent in rack.agents]
    request = admin.ApplyRequest(
        agents=agents,
        clusters=[admin.ClusterSpec(id="cl0", agent_ids=[agent.id for agent in agents], ipu_link_topology=2)],
        allocations=[admin.AllocationSpec(id="a0", cluster_id="cl0", size=len(agents))],
    )
    assert server.admin.Apply(request, timeout=10).applied


def start(server: Any, *tests: str, cluster: str = "cl0") -> Any:
    numbers = [admin.ClusterTest.Value(f"CLUSTER_TEST_{test}") for test in tests]
    return server.admin.StartClusterTest(
        admin.StartClusterTestRequest(cluster_id=cluster, tests=numbers), timeout=10
    ).run


def last(server: Any, **request: Any) -> dict[str, Any]:
    return objects.test_run(server.admin.GetClusterTest(admin.GetClusterTestRequest(**request), timeout=40).run)


def outcome(server: Any) -> dict[str, Any]:
    """Return the run after its end."""
    until(lambda: last(server, known_results=99, wait_milliseconds=20_000)["state"] != "running", 60, "end of run")
    return last(server)


def figures(run: dict[str, Any]) -> dict[str, str]:
    return {result["test"]: f"{result['passed']}/{result['total']}" for result in run["results"]}


def partition(server: Any, id: str, size: int = 4) -> None:
    requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id="a0")
    server.user.CreatePartition(virmgrpc.CreatePartitionRequest(requirements=requirements), timeout=10)


def test_a_healthy_rack_passes_directly_after_registration(make_server: Any) -> None:
    server = make_server(QUICK)
    assert last(server)["state"] == "none"
    begun = start(server)
    assert begun.state == admin.ClusterTestRun.RUNNING
    run = outcome(server)
    assert (run["state"], run["ok"], run["run_id"]) == ("finished", True, begun.run_id)
    assert figures(run) == {
        "Sync-Link": "14/14",
        "Cabling": "32/32",
        "IPU-Link": "160/160",
        "Traffic": "4/4",
        "GW-Link": "0/0",
        "Version": "6/6",
    }
    assert run["agents"] == [f"ag{number:02d}" for number in range(1, 9)]
    assert run["started"] <= run["ended"]
    assert run["results"][-1]["versions"] == {
        component: dict.fromkeys(run["agents"], version) for component, version in VERSIONS.items()
    }
    listed = server.admin.ListAgents(admin.ListAgentsRequest(), timeout=10).agents
    assert [objects.agent(each)["versions"] for each in listed] == [VERSIONS] * 8


def test_the_last_run_of_each_cluster_is_kept_until_its_removal(make_server: Any, rack: RackProcess) -> None:
    server = make_server(QUICK)
    server.admin.RemoveAllocation(admin.RemoveRequest(id="a0", force=True), timeout=10)
    server.admin.RemoveCluster(admin.RemoveRequest(id="cl0"), timeout=10)
    halves = {"cl0": rack.agents[:4], "cl1": rack.agents[4:]}
    for id, agents in halves.items():
        spec = admin.ClusterSpec(id=id, agent_ids=[agent.id for agent in agents], ipu_link_topology=1)
        assert server.admin.Apply(admin.ApplyRequest(clusters=[spec]), timeout=10).applied

    def clusters(**request: Any) -> tuple[str, list[str]]:
        reply = server.admin.GetClusterTest(admin.GetClusterTestRequest(**request), timeout=10)
        return reply.run.cluster.id, [run.cluster.id for run in reply.others]

    assert clusters(every_cluster=True) == ("", [])
    for id in halves:
        assert start(server, "VERSION", cluster=id).cluster.id == id
        assert outcome(server)["ok"]
    assert clusters(every_cluster=True) == ("cl1", ["cl0"])
    assert clusters() == ("cl1", [])
    assert start(server, "VERSION").cluster.id == "cl0"
    assert outcome(server)["ok"]
    assert clusters(every_cluster=True) == ("cl0", ["cl1"])
    server.admin.RemoveCluster(admin.RemoveRequest(id="cl1"), timeout=10)
    until(lambda: clusters(every_cluster=True) == ("cl0", []), 10, "results of a removed cluster are dropped")


def test_operations_that_a_running_test_blocks(make_server: Any, rack: RackProcess) -> None:
    server = make_server(SLOW)
    until(lambda: start_and_finish_versions(server), 20, "all agents respond")
    rack.fault("hang ag03")
    begun = start(server, "CABLING", "VERSION")
    in_progress = "a test of cluster 'cl0' is in progress. Wait for its end, or stop it."
    attempts: list[tuple[Callable[[], Any], str]] = [
        (lambda: partition(server, "p1"), f"Cannot create partition 'p1': {in_progress}"),
        (
            lambda: server.admin.RemoveCluster(admin.RemoveRequest(id="cl0", force=True), timeout=10),
            f"Cannot remove cluster 'cl0': {in_progress}",
        ),
        (
            lambda: server.admin.RemoveCluster(admin.RemoveRequest(id="cl0"), timeout=10),
            f"Cannot remove cluster 'cl0': {in_progress}",
        ),
        (
            lambda: server.admin.RemoveAgent(admin.RemoveRequest(id="ag05", force=True), timeout=10),
            f"Cannot remove agent 'ag05': {in_progress}",
        ),
        (
            lambda: start(server),
            "Cannot test cluster 'cl0': a test of cluster 'cl0' is in progress, and only one can run at a time. "
            "Wait for its end, or stop it.",
        ),
    ]
    for attempt, message in attempts:
        with pytest.raises(grpc.RpcError) as rejected:
            attempt()
        assert (rejected.value.code(), rejected.value.details()) == (grpc.StatusCode.FAILED_PRECONDITION, message)
    batch = admin.ApplyRequest(clusters=[admin.ClusterSpec(id="cl0", agent_ids=["ag01"], ipu_link_topology=1)])
    assert not server.admin.Apply(batch, timeout=10).applied
    with pytest.raises(grpc.RpcError) as rejected:
        server.admin.StopClusterTest(admin.StopClusterTestRequest(run_id="another"), timeout=10)
    assert rejected.value.code() is grpc.StatusCode.NOT_FOUND
    assert last(server)["state"] == "running"
    stopped = server.admin.StopClusterTest(admin.StopClusterTestRequest(run_id=begun.run_id), timeout=10).run
    assert stopped.state == admin.ClusterTestRun.STOPPED
    partition(server, "p1")
    rack.fault("heal ag03")


def start_and_finish_versions(server: Any) -> bool:
    start(server, "VERSION")
    return bool(outcome(server)["ok"])


@pytest.mark.parametrize("lose", ["hang", "power"])
def test_an_agent_lost_during_a_run(make_server: Any, rack: RackProcess, lose: str) -> None:
    server = make_server(QUICK)
    until(lambda: start_and_finish_versions(server), 20, "all agents respond")
    start(server)
    if lose == "hang":
        rack.fault("hang ag03")
    else:
        rack.stop_machines("ag03")
    run = outcome(server)
    assert run["state"] == "finished"
    failed = {result["test"]: result["failures"] for result in run["results"] if result["failures"]}
    # The test in progress at the loss varies. Failures name this machine and no other.
    # During the test in progress, possibly only its neighbours report failures. In the last test it is lost.
    assert "ag03" in {failure["agent"] for failure in failed["Version"]}
    for failures in failed.values():
        assert {failure["kind"] for failure in failures} <= {"agent_unreachable", "link_down", "no_sync"}
        assert all(
            "ag03" in (failure["agent"], *((end or {}).get("agent") for end in (failure["a"], failure["b"])))
            for failure in failures
        )
    assert not run["ok"]
    rack.fault("heal ag03") if lose == "hang" else rack.start_machines("ag03")


def test_partitions_are_disturbed_only_by_a_single_chosen_test(make_server: Any) -> None:
    server = make_server(QUICK)
    partition(server, "p1", 16)
    start(server)
    run = outcome(server)
    assert run["ok"]
    skipped = {result["test"]: result["disturbs"] for result in run["results"] if result["skipped"]}
    assert skipped == {test: ["p1"] for test in ("Sync-Link", "IPU-Link", "Traffic", "GW-Link")}
    assert {result["test"] for result in run["results"] if result["passed"]} == {"Cabling", "Version"}
    start(server, "TRAFFIC")
    assert figures(outcome(server)) == {"Traffic": "4/4"}


def test_invalid_requests(make_server: Any) -> None:
    server = make_server(QUICK)
    with pytest.raises(grpc.RpcError) as unknown:
        server.admin.StartClusterTest(admin.StartClusterTestRequest(cluster_id="nope"), timeout=10)
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    assert unknown.value.details() == "Cannot test cluster 'nope': it does not exist. Check its id, or create it first."
    with pytest.raises(grpc.RpcError) as odd:
        server.admin.StartClusterTest(admin.StartClusterTestRequest(cluster_id="cl0", tests=[99]), timeout=10)
    assert odd.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.RpcError) as other:
        last(server, run_id="another")
    assert other.value.code() is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError) as user:
        server.admin.StopClusterTest(admin.StopClusterTestRequest(run_id="another"), timeout=10)
    assert user.value.code() is grpc.StatusCode.NOT_FOUND
    assert server.admin.StopClusterTest(admin.StopClusterTestRequest(), timeout=10).run.state == 0


def test_a_killed_controller_drops_the_run_and_works_again(tmp_path: Path, rack: RackProcess) -> None:
    rack.stop_machines()
    rack.start_machines()
    database = tmp_path / "vipu.db"
    initialise(database)
    server = Process("--database", str(database))
    try:
        apply(server, rack)
        until(lambda: start_and_finish_versions(server), 20, "all agents respond")
        rack.fault("hang ag05")
        start(server, "CABLING")
        server.kill()
        rack.fault("heal ag05")
        server = Process("--database", str(database))
        assert last(server)["state"] == "none"
        partition(server, "p1")
        assert server.stop() == 0
    finally:
        server.kill()


def test_a_stopping_controller_ends_waiting_calls(make_server: Any, rack: RackProcess) -> None:
    server = make_server(SLOW)
    until(lambda: start_and_finish_versions(server), 20, "all agents respond")
    rack.fault("hang ag05")
    start(server, "CABLING")
    waiting = server.admin.GetClusterTest.future(admin.GetClusterTestRequest(wait_milliseconds=30_000), timeout=40)
    server.server.stop(1)
    assert waiting.code() in (grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    rack.fault("heal ag05")
