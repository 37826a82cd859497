# SPDX-License-Identifier: GPL-3.0-or-later
"""Duration of complete cluster tests of one rack and of many racks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import grpc

from openipu.shared.vipu.contract import admin
from openipu.vipu.agent_api.contract import agent

from .controller import paired
from .lab import MACHINES_PER_POD, Lab, Machine
from .measure import Table, Target


def bench_one_rack(lab: Lab, table: Table, rounds: int) -> None:
    """Measure all six tests of 16 machines; peer: one request to each of their agents."""
    lab.apply_pods(1)
    lab.wait_agents_up()
    with lab.channel() as channel, contextlib.ExitStack() as stack:
        stub = admin.stub(channel, "AdminService")
        agents = _agents(stack, lab.machines)
        _test(stub, "c0")
        duration, peer = paired(rounds, lambda: _test(stub, "c0"), lambda: _read_cables(agents))
    table.add(
        "complete test of a rack: 30 sync, 64 cables, 320 links, 8 traffic, versions",
        f"{duration:.0f} ms",
        f"ReadCables of the 16 agents: {peer:.1f} ms",
        Target("≤ 1 s", 1000),
        duration,
    )


def bench_many_racks(lab: Lab, table: Table, rounds: int) -> None:
    """Measure the tests of all racks in sequence; peer: one of these racks, in ms and as a ratio per rack."""
    lab.apply_pods(lab.pods)
    lab.wait_agents_up()
    lab.wait_idle()
    with lab.channel() as channel:
        stub = admin.stub(channel, "AdminService")
        one_rack = median(_test(stub, "c0") for _ in range(3))
        duration = median(sum(_test(stub, f"c{pod}") for pod in range(lab.pods)) for _ in range(min(rounds, 3)))
    table.add(
        f"complete test of {lab.pods} racks, {lab.pods * MACHINES_PER_POD} machines",
        f"{duration:.1f} s",
        f"one of these racks {one_rack * 1000:.0f} ms: {duration / one_rack / lab.pods:.2f} × per rack",
        Target("≤ 20 s", 20),
        duration,
    )


def _agents(stack: contextlib.ExitStack, machines: Sequence[Machine]) -> list[Any]:
    return [
        agent.stub(stack.enter_context(grpc.insecure_channel(f"{m.host}:{m.port}")), "AgentService") for m in machines
    ]


def _test(stub: Any, cluster: str) -> float:
    """Run all tests and return the seconds. Raises RuntimeError when a test fails."""
    start = time.perf_counter()
    run = stub.StartClusterTest(admin.StartClusterTestRequest(cluster_id=cluster), timeout=20).run
    while run.state == admin.ClusterTestRun.RUNNING:
        request = admin.GetClusterTestRequest(run_id=run.run_id, known_results=6, wait_milliseconds=30_000)
        run = stub.GetClusterTest(request, timeout=60).run
    if not run.ok:
        raise RuntimeError(f"Cannot measure cluster '{cluster}': its tests failed.")
    return time.perf_counter() - start


def _read_cables(agents: Sequence[Any]) -> float:
    start = time.perf_counter()
    for call in [stub.ReadCables.future(agent.ReadCablesRequest()) for stub in agents]:
        call.result(timeout=10)
    return time.perf_counter() - start
