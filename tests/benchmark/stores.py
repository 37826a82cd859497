# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed of records and of the API on SQLite and on three nodes of etcd, beside raw etcd, in one run; and takeovers.

Run it with ``python -m tests.benchmark.stores``. It needs etcd-server.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from aetcd import rpc
from tabulate import tabulate

from openipu.process import log
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.model import Agent, Kind, Put
from openipu.vipu.domain.specs import PartitionSpec, Removal
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.etcd import content, keys
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.benchmark.controller import partition, send_all
from tests.benchmark.etcd_lab import EtcdLab, TakeoverLab
from tests.benchmark.lab import MACHINES_PER_POD, Lab
from tests.benchmark.measure import Table, Target
from tests.ha.etcd_nodes import EtcdCluster
from tests.ha.replica import Replica
from tests.unit.vipu.domain.rules_support import pod

CALLERS, SECONDS, ROUNDS = 64, 3.0, 3
PODS, CREATES = 64, 2048  # of the controllers
FLEETS = ((1, 64), (64, 4096), (160, 10_000))  # racks and partitions of a takeover; each machine has four IPUs
THIRD, TEN = Target("≥ 1/3", 1 / 3, at_least=True), Target("≤ 10 ×", 10)
_VALUE = b"x" * 400  # a record of a partition


def rate(work: Callable[[int], None], callers: int = CALLERS) -> float:
    """Return the calls per second of several threads."""
    counts, end = [0] * callers, time.monotonic() + SECONDS

    def run(caller: int) -> None:
        while time.monotonic() < end:
            work(caller)
            counts[caller] += 1

    threads = [threading.Thread(target=run, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


def create_and_remove(writer: RecordWriter) -> Callable[[int], None]:
    """Return the work of a caller: create a partition, and remove it."""

    def work(caller: int) -> None:
        spec = PartitionSpec(f"p{caller}", 1, "a1")
        writer.submit(lambda state: (rules.create(state, spec, Context()), None)).result(60)
        removal = Removal(Kind.PARTITION, spec.id)
        writer.submit(lambda state: (rules.remove(state, removal, Context()), None)).result(60)

    return work


def fill(writer: RecordWriter) -> None:
    """Write the records of a rack."""
    desired = pod(16, allocations={"a1": 16})
    records = [Put(record) for kind in Kind for record in desired.table(kind).values()]
    writer.submit(lambda state: (records, None)).result(60)


def batch_seconds(writer: RecordWriter, number: int) -> float:
    """Return the seconds of one transaction that creates a thousand agents."""
    agents = [Put(Agent(f"n{number}-{each}", f"10.{number}.0.1", each + 1)) for each in range(1000)]
    start = time.perf_counter()
    writer.submit(lambda state: (agents, None)).result(60)
    return time.perf_counter() - start


def raw_group(client: EtcdClient) -> Callable[[int], None]:
    """Return the work of a caller: one transaction of 64 records with one guard."""

    def work(caller: int) -> None:
        client.call("KV", "Txn", raw_transaction(64, caller), 10.0)

    return work


def raw_transaction(count: int, caller: int = 0) -> object:
    """Return a transaction that puts records."""
    guard = rpc.Compare(key=b"/raw/leader", target=rpc.Compare.VERSION, result=rpc.Compare.EQUAL, version=0)
    puts = [
        rpc.RequestOp(request_put=rpc.PutRequest(key=b"/raw/%d/%d" % (caller, each), value=_VALUE))
        for each in range(count)
    ]
    return rpc.TxnRequest(compare=[guard], success=puts)


def raw_batch_seconds(client: EtcdClient) -> float:
    """Return the seconds of one transaction that puts a thousand records."""
    start = time.perf_counter()
    client.call("KV", "Txn", raw_transaction(1000), 10.0)
    return time.perf_counter() - start


class Samples:
    """Results of several rounds, each with the load of the machine."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._loads: list[float] = []

    def add(self, name: str, value: float) -> float:
        """Print and return a result."""
        load = os.getloadavg()[0]
        print(f"{name:58} {value:>10,.3f}   load {load:.1f}", flush=True)
        self._values.setdefault(name, []).append(value)
        self._loads.append(load)
        return value

    def median(self, name: str) -> float:
        """Return the median of the rounds."""
        return statistics.median(self._values[name])

    def ratio(self, name: str, peer: str) -> float:
        """Return the median of the ratios to a peer of the same round."""
        return statistics.median(a / b for a, b in zip(self._values[name], self._values[peer], strict=True))

    @property
    def load(self) -> str:
        """Lowest and highest load."""
        return f"{min(self._loads):.1f} to {max(self._loads):.1f}"


@dataclass
class LoadTable(Table):
    """Table with the load of the machine during each measurement."""

    loads: list[str] = field(default_factory=list)

    def compare(self, samples: Samples, name: str, own: str, peer: str, target: Target, unit: str = "/s") -> None:
        """Append the ratio of two results."""
        ratio = samples.ratio(own, peer)
        factor, form = (1, ",.0f") if unit == "/s" else (1000, ".0f")
        values = [f"{samples.median(each) * factor:{form}}{unit}" for each in (own, peer)]
        self.add(name, f"{ratio:.2f} × ({values[0]})", f"{peer} {values[1]}", target, ratio)
        self.loads.append(samples.load)

    def text(self) -> str:
        """Return the table as text."""
        rows = [(*row, load) for row, load in zip(self.rows, self.loads, strict=True)]
        headers = ("figure", "measured", "peer", "target", "result", "load")
        return f"{self.title}\n\n{tabulate(rows, headers)}"


def bench_writers(cluster: EtcdCluster, folder: Path, table: LoadTable) -> None:
    """Measure the writer of records without the API."""
    database = folder / "records.db"
    initialise(database)
    location = keys.parse(cluster.url)
    content.initialise(location)
    sqlite, etcd = RecordWriter(Store(database)), RecordWriter(Replica(location).lead())
    client = EtcdClient(location)
    samples = Samples()
    try:
        for writer in (sqlite, etcd):
            writer.start()
            fill(writer)
        for number in range(ROUNDS):
            for name, writer in (("SQLite", sqlite), ("etcd", etcd)):
                samples.add(f"{name} changes", 2 * rate(create_and_remove(writer)))
                samples.add(f"{name} batch", batch_seconds(writer, number))
            samples.add("raw etcd records", 64 * rate(raw_group(client), 1))
            samples.add("raw etcd batch", raw_batch_seconds(client))
    finally:
        for writer in (sqlite, etcd):
            writer.stop()
        client.close()
    table.compare(samples, "creates and removals, 64 callers", "etcd changes", "SQLite changes", THIRD)
    table.compare(samples, "same, against groups of 64 records", "etcd changes", "raw etcd records", THIRD)
    table.compare(samples, "1000 records in one transaction", "etcd batch", "raw etcd batch", TEN, " ms")


def bench_api(cluster: EtcdCluster, table: LoadTable) -> None:
    """Measure a controller on each store, with calls of gRPC and agents of 1024 machines."""
    samples = Samples()
    url = f"{cluster.url}/api"
    content.initialise(keys.parse(url))
    client = EtcdClient(keys.parse(url))
    with closing(client), Lab(PODS) as sqlite, EtcdLab(PODS, url, network=1) as etcd:
        for _ in range(ROUNDS):
            samples.add("raw etcd batch", raw_batch_seconds(client))
            for name, lab in (("SQLite", sqlite), ("etcd", etcd)):
                bench_calls(lab, name, samples)
    table.compare(samples, "CreatePartition, 64 in flight", "etcd CreatePartition", "SQLite CreatePartition", THIRD)
    name = "Apply of 1000 agents in one batch"
    table.compare(samples, name, "etcd Apply", "raw etcd batch", TEN, " ms")
    table.compare(samples, "same, against the database", "etcd Apply", "SQLite Apply", Target("≤ 3 ×", 3), " ms")


def bench_calls(lab: Lab, name: str, samples: Samples) -> None:
    """Measure one round of calls to a controller. Its twin is idle afterwards."""
    with lab.channel() as channel:
        user, administrator = virmgrpc.stub(channel, "UserService"), admin.stub(channel, "AdminService")
        agents = [admin.AgentSpec(id=m.agent_id, host=m.host, port=m.port) for m in lab.machines[:1000]]
        requests = [partition(f"s{number}", f"a{number % PODS}") for number in range(CREATES)]
        lab.wait_idle()
        start = time.perf_counter()
        reply = administrator.Apply(admin.ApplyRequest(agents=agents))
        samples.add(f"{name} Apply", time.perf_counter() - start)
        if not reply.applied:
            raise RuntimeError(str(reply.results[0]))
        lab.clear()
        lab.apply_pods(PODS)
        lab.wait_agents_up()
        lab.wait_idle()
        samples.add(f"{name} CreatePartition", CREATES / send_all(user.CreatePartition, requests))
        lab.clear()
        lab.wait_idle()


def bench_takeover(cluster: EtcdCluster, table: LoadTable) -> None:
    """Measure the memory of a leader and of a follower, and the time from a kill of the leader."""
    peers = ("", "", "")
    for racks, partitions in FLEETS:
        url = f"{cluster.url}/takeover{racks}"
        content.initialise(keys.parse(url))
        load = os.getloadavg()[0]
        with TakeoverLab(racks, url) as lab:
            lab.apply_pods(racks, partitions)
            lab.wait_active(partitions)
            lab.wait_agents_up()
            lab.start_follower()
            lab.wait_idle()
            leader, follower = lab.memory(), lab.follower_memory()
            listed, up = lab.take_over()
        values = (f"{leader:.0f} MB, {follower:.0f} MB", f"{listed:.2f} s", f"{up:.2f} s")
        names = (
            "memory of leader and follower",
            "kill of the leader until the first list",
            "same, until all agents are up",
        )
        title = f"{racks * MACHINES_PER_POD} agents, {partitions} partitions"
        for name, value, peer in zip(names, values, peers, strict=True):
            table.add(f"{name}, {title}", value, peer)
            table.loads.append(f"{load:.1f}")
        peers = peers if any(peers) else tuple(f"one rack: {value}" for value in values)


def main() -> None:
    """Measure and print a table of figures. Missed targets are reported, and the exit status is 0."""
    log.configure("text", "warning")
    table = LoadTable(f"Records in etcd, {len(os.sched_getaffinity(0))} cores: medians of {ROUNDS} rounds")
    with tempfile.TemporaryDirectory() as folder:
        cluster = EtcdCluster(Path(folder) / "etcd", 3, "--max-txn-ops", "2000")
        try:
            bench_writers(cluster, Path(folder), table)
            bench_api(cluster, table)
            bench_takeover(cluster, table)
        finally:
            cluster.stop()
            print(table.text())
    missed = "; ".join(table.missed)
    print(f"\nMissed targets: {missed}." if missed else "\nAll targets are met.")


if __name__ == "__main__":
    main()
