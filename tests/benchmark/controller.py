# SPDX-License-Identifier: GPL-3.0-or-later
"""What the controller does on one core: durable creates per second, listing, batches, activation."""

from __future__ import annotations

import threading
import time

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc

from .lab import Lab
from .measure import Table, median_of

IN_FLIGHT = 64


def create_storm(address: str, requests: list[object]) -> float:
    """Send all requests with 64 in flight; seconds until the last acknowledgement."""
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(timeout=10)
        stub = virmgrpc.stub(channel, "UserService")
        window = threading.Semaphore(IN_FLIGHT)
        done, failed = threading.Event(), []
        left = len(requests)
        lock = threading.Lock()

        def acknowledged(call: grpc.Future) -> None:
            nonlocal left
            window.release()
            if call.code() is not grpc.StatusCode.OK:
                failed.append(call.details())
            with lock:
                left -= 1
                if not left:
                    done.set()

        start = time.perf_counter()
        for request in requests:
            window.acquire()
            stub.CreatePartition.future(request).add_done_callback(acknowledged)
        done.wait(timeout=120)
        took = time.perf_counter() - start
    if failed or left:
        raise RuntimeError(f"{len(failed)} creates failed, {left} unanswered; the first: {failed[:1]}")
    return took


def partition(id: str, allocation: str, size: int = 1) -> object:
    """A request to create a partition."""
    return virmgrpc.CreatePartitionRequest(
        requirements=virmgrpc.PartitionRequirements(id=id, size=size, allocation_id=allocation)
    )


def bench_creates(lab: Lab, table: Table, rounds: int) -> None:
    """4096 one-IPU partitions on 1024 machines, 64 in flight; the agents are configured meanwhile."""
    requests = [partition(f"s{n}", f"a{n % 64}") for n in range(4096)]

    def once() -> float:
        lab.apply_pods(64)
        lab.wait_agents_up()
        took = create_storm(lab.address, requests)
        lab.wait_active(len(requests))
        return took

    rate = len(requests) / median_of(rounds, once)
    table.add(
        "durable CreatePartition, 64 in flight, 1024 machines, server on one core",
        f"{rate:,.0f}/s",
        "agents configured meanwhile",
        "≥ 1,500/s",
        rate >= 1500,
    )


def bench_list(lab: Lab, table: Table, rounds: int) -> None:
    """ListPartitions of 10,000, from the call to the parsed reply."""
    lab.apply_pods(lab.pods, partitions=10_000)
    lab.wait_active(10_000)
    with grpc.insecure_channel(lab.address, options=[("grpc.max_receive_message_length", 64 << 20)]) as channel:
        stub = virmgrpc.stub(channel, "UserService")

        def once() -> float:
            start = time.perf_counter()
            reply = stub.ListPartitions(virmgrpc.ListPartitionsRequest())
            took = time.perf_counter() - start
            if len(reply.partitions) != 10_000:
                raise RuntimeError(f"{len(reply.partitions)} partitions listed")
            return took

        once()
        took = median_of(rounds, once) * 1000
    table.add("ListPartitions of 10,000", f"{took:.1f} ms", "", "≤ 30 ms", took <= 30)


def bench_apply(lab: Lab, table: Table, rounds: int) -> None:
    """One batch of 1000 agents, durable."""
    request = admin.ApplyRequest(
        agents=[admin.AgentSpec(id=m.agent_id, host=m.host, port=m.port) for m in lab.machines[:1000]]
    )
    with grpc.insecure_channel(lab.address) as channel:
        stub = admin.stub(channel, "AdminService")

        def once() -> float:
            lab.clear()
            start = time.perf_counter()
            reply = stub.Apply(request)
            took = time.perf_counter() - start
            if not reply.applied:
                raise RuntimeError(str(reply.results[0]))
            return took

        took = median_of(rounds, once) * 1000
    lab.clear()
    table.add("Apply of 1000 agents in one batch", f"{took:.1f} ms", "", "≤ 100 ms", took <= 100)


def bench_active(lab: Lab, table: Table, rounds: int) -> None:
    """From CreatePartition to ACTIVE for 16 IPUs on four machines of an idle rack."""
    lab.apply_pods(1)
    lab.wait_agents_up()
    with grpc.insecure_channel(lab.address) as channel:
        stub = virmgrpc.stub(channel, "UserService")

        def once() -> float:
            start = time.perf_counter()
            stub.CreatePartition(partition("now", "a0", 16))
            request = virmgrpc.GetPartitionStatusRequest(partition_id="now")
            while stub.GetPartitionStatus(request).status.ready_state != virmgrpc.PS_ACTIVE:
                if time.perf_counter() - start > 10:
                    raise RuntimeError("not ACTIVE after 10 s")
            took = time.perf_counter() - start
            stub.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id="now"))
            return took

        once()
        took = median_of(rounds, once) * 1000
    table.add("CreatePartition to ACTIVE, 16 IPUs on 4 machines", f"{took:.1f} ms", "", "≤ 100 ms", took <= 100)
