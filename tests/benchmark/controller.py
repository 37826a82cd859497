# SPDX-License-Identifier: GPL-3.0-or-later
"""Performance of the controller: durable creates per second on one core, listing, batches, activation."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import grpc

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.agent_api.contract import agent

from .lab import Lab
from .measure import Table, Target

IN_FLIGHT = 64


def send_all(method: Any, requests: Sequence[Any]) -> float:
    """Send all requests with 64 in flight. Return the seconds until the last response. Raises RuntimeError."""
    window, done = threading.Semaphore(IN_FLIGHT), threading.Semaphore(0)
    failed: list[str] = []

    def on_response(call: Any) -> None:
        if call.code() is not grpc.StatusCode.OK:
            failed.append(call.details())
        window.release()
        done.release()

    start = time.perf_counter()
    for request in requests:
        window.acquire()
        method.future(request, timeout=60).add_done_callback(on_response)
    for _ in requests:
        done.acquire()
    duration = time.perf_counter() - start
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(requests)} calls failed. First error: {failed[0]}")
    return duration


def partition(id: str, allocation: str, size: int = 1) -> Any:
    """Return a request to create a partition."""
    return virmgrpc.CreatePartitionRequest(
        requirements=virmgrpc.PartitionRequirements(id=id, size=size, allocation_id=allocation)
    )


def bench_creates(lab: Lab, table: Table, rounds: int) -> None:
    """Measure the creation of 4096 one-IPU partitions on 1024 machines, 64 in flight, while agents are configured."""
    with lab.channel() as channel:
        user, version = virmgrpc.stub(channel, "UserService"), virmgrpc.stub(channel, "VersionService")
        requests = [partition(f"s{number}", f"a{number % 64}") for number in range(4096)]
        empty = [virmgrpc.VersionRequest()] * len(requests)
        rates, floor, cpu = [], [], []
        for _ in range(rounds):
            lab.clear()
            lab.apply_pods(64)
            lab.wait_agents_up()
            lab.wait_idle()
            floor.append(len(requests) / send_all(version.GetVersion, empty))
            before = lab.server_cpu()
            rates.append(len(requests) / send_all(user.CreatePartition, requests))
            cpu.append((lab.server_cpu() - before) / len(requests))
            lab.wait_active(len(requests))
    rate = median(rates)
    table.add(
        "durable CreatePartition, 1024 machines, server on one core",
        f"{rate:,.0f}/s ({median(cpu) * 1000:.2f} ms CPU each)",
        f"empty call GetVersion: {median(floor):,.0f}/s",
        Target("≥ 1,500/s", 1500, at_least=True),
        rate,
    )


def bench_list(lab: Lab, table: Table, rounds: int) -> None:
    """Measure ListPartitions of 10,000 ACTIVE partitions, from the call to the parsed reply."""
    lab.apply_pods(lab.pods, partitions=10_000)
    lab.wait_active(10_000)
    single = [virmgrpc.GetPartitionStatusRequest(partition_id=f"q{number:05}") for number in range(1000)]
    with lab.channel() as channel:
        user = virmgrpc.stub(channel, "UserService")

        def once() -> float:
            # Change the list, so that no reply is cached.
            user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="q00000"))
            user.CreatePartition(partition("q00000", "a0"))
            start = time.perf_counter()
            reply = user.ListPartitions(virmgrpc.ListPartitionsRequest())
            duration = time.perf_counter() - start
            if len(reply.partitions) != 10_000:
                raise RuntimeError(
                    f"Cannot measure ListPartitions: it returned {len(reply.partitions)} of 10,000 partitions."
                )
            return duration

        once()
        duration, peer = paired(rounds, once, lambda: send_all(user.GetPartitionStatus, single))
    table.add(
        "ListPartitions of 10,000",
        f"{duration:.1f} ms",
        f"1000 GetPartitionStatus, 64 in flight: {peer:.0f} ms",
        Target("≤ 30 ms", 30),
        duration,
    )


def bench_apply(lab: Lab, table: Table, rounds: int) -> None:
    """Measure one durable batch of 1000 agents. Each run waits until the controller has closed previous connections."""
    agents = [admin.AgentSpec(id=m.agent_id, host=m.host, port=m.port) for m in lab.machines[:1000]]
    single = [admin.CreateAgentRequest(spec=agent) for agent in agents]
    with lab.channel() as channel:
        stub = admin.stub(channel, "AdminService")

        def once() -> float:
            lab.clear()
            lab.wait_idle()
            start = time.perf_counter()
            reply = stub.Apply(admin.ApplyRequest(agents=agents))
            duration = time.perf_counter() - start
            if not reply.applied:
                raise RuntimeError(str(reply.results[0]))
            return duration

        def one_by_one() -> float:
            lab.clear()
            lab.wait_idle()
            return send_all(stub.CreateAgent, single)

        duration, peer = paired(rounds, once, one_by_one)
    lab.clear()
    table.add(
        "Apply of 1000 agents in one batch",
        f"{duration:.1f} ms",
        f"1000 CreateAgent, 64 in flight: {peer:.0f} ms",
        Target("≤ 100 ms", 100),
        duration,
    )


def bench_active(lab: Lab, table: Table, rounds: int) -> None:
    """Measure the time from CreatePartition to ACTIVE for 16 IPUs on four machines of an idle rack."""
    lab.apply_pods(1)
    lab.wait_agents_up()
    with lab.channel() as channel, contextlib.ExitStack() as stack:
        user = virmgrpc.stub(channel, "UserService")
        agents = [
            agent.stub(stack.enter_context(grpc.insecure_channel(f"{m.host}:{m.port}")), "AgentService")
            for m in lab.machines[:4]
        ]

        def once() -> float:
            start = time.perf_counter()
            user.CreatePartition(partition("now", "a0", 16))
            request = virmgrpc.GetPartitionStatusRequest(partition_id="now")
            while user.GetPartitionStatus(request).status.ready_state != virmgrpc.PS_ACTIVE:
                if time.perf_counter() - start > 10:
                    raise RuntimeError("Cannot measure the activation: the partition is not ACTIVE after 10 s.")
            duration = time.perf_counter() - start
            user.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="now"))
            return duration

        def query_agents() -> float:
            start = time.perf_counter()
            for call in [stub.GetInfo.future(agent.GetInfoRequest()) for stub in agents]:
                call.result(timeout=10)
            return time.perf_counter() - start

        once()
        query_agents()
        duration, peer = paired(rounds, once, query_agents)
    table.add(
        "CreatePartition to ACTIVE, 16 IPUs on 4 machines",
        f"{duration:.1f} ms",
        f"GetInfo of the 4 agents: {peer:.1f} ms",
        Target("≤ 100 ms", 100),
        duration,
    )


def paired(rounds: int, call: Callable[[], float], peer: Callable[[], float]) -> tuple[float, float]:
    """Run both alternately. Return the median of each in milliseconds."""
    pairs = [(call(), peer()) for _ in range(rounds)]
    return median(own for own, _ in pairs) * 1000, median(other for _, other in pairs) * 1000
