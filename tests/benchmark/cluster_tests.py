# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole cluster tests: of one rack, and of as many racks as an operator brings up."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

from openipu.vipu.agent.contract import agent

from .controller import paired
from .lab import MACHINES_PER_POD, Lab, Machine
from .measure import Table, Target


def bench_one_rack(lab: Lab, table: Table, rounds: int) -> None:
    """All six tests of 16 machines, beside one question to each of their agents."""
    lab.apply_pods(1)
    lab.wait_agents_up()
    with lab.channel() as channel, contextlib.ExitStack() as stack:
        stub = admin.stub(channel, "AdminService")
        agents = _agents(stack, lab.machines)
        _test(stub, "c0")
        took, asked = paired(rounds, lambda: _test(stub, "c0"), lambda: _read_cables(agents))
    table.add(
        "whole test of a rack: 30 sync, 64 cables, 320 links, 8 traffic, versions",
        f"{took:.0f} ms",
        f"ReadCables of the 16 agents: {asked:.1f} ms",
        Target("≤ 1 s", 1000),
        took,
    )


def bench_many_racks(lab: Lab, table: Table, rounds: int) -> None:
    """The same for 64 racks one after the other, and how much dearer each is than one alone."""
    lab.apply_pods(lab.pods)
    lab.wait_agents_up()
    lab.rest()
    with lab.channel() as channel:
        stub = admin.stub(channel, "AdminService")
        alone = median(_test(stub, "c0") for _ in range(3))
        took = median(sum(_test(stub, f"c{pod}") for pod in range(lab.pods)) for _ in range(min(rounds, 3)))
    table.add(
        f"whole test of {lab.pods} racks, {lab.pods * MACHINES_PER_POD} machines",
        f"{took:.1f} s",
        f"one of these racks: {alone * 1000:.0f} ms, so {took / alone / lab.pods:.2f} × per rack",
        Target("≤ 20 s", 20),
        took,
    )


def _agents(stack: contextlib.ExitStack, machines: Sequence[Machine]) -> list[Any]:
    return [
        agent.stub(stack.enter_context(grpc.insecure_channel(f"{m.host}:{m.port}")), "AgentService") for m in machines
    ]


def _test(stub: Any, cluster: str) -> float:
    """Seconds of a run of all tests, which must pass."""
    start = time.perf_counter()
    run = stub.StartClusterTest(admin.StartClusterTestRequest(cluster_id=cluster), timeout=20).run
    while run.state == admin.ClusterTestRun.RUNNING:
        news = admin.GetClusterTestRequest(run_id=run.run_id, known_results=6, wait_milliseconds=30_000)
        run = stub.GetClusterTest(news, timeout=60).run
    if not run.ok:
        raise RuntimeError(f"cluster {cluster} did not pass its tests")
    return time.perf_counter() - start


def _read_cables(agents: Sequence[Any]) -> float:
    start = time.perf_counter()
    for call in [each.ReadCables.future(agent.ReadCablesRequest()) for each in agents]:
        call.result(timeout=10)
    return time.perf_counter() - start
