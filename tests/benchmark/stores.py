# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed of the writer of records on SQLite and on three nodes of etcd, beside raw etcd, in the same run.

Run it with ``python -m tests.benchmark.stores``. It needs etcd-server.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from aetcd import rpc

from openipu.process import log
from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.model import Agent, Kind, Put
from openipu.vipu.domain.specs import PartitionSpec, Removal
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.etcd import content, keys
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.store import Store
from openipu.vipu.storage.writer import RecordWriter
from tests.ha.etcd_nodes import EtcdCluster
from tests.ha.replica import Replica
from tests.unit.vipu.domain.rules_support import pod

CALLERS, SECONDS, ROUNDS = 64, 3.0, 3
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


def show(name: str, value: str) -> None:
    """Print a figure with the load of the machine."""
    print(f"{name:58} {value:>14}   load {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    """Print all figures, ``ROUNDS`` times."""
    log.configure("text", "warning")
    with tempfile.TemporaryDirectory() as folder:
        cluster = EtcdCluster(Path(folder) / "etcd", 3, "--max-txn-ops", "2000")
        database = Path(folder) / "records.db"
        initialise(database)
        location = keys.parse(cluster.url)
        content.initialise(location)
        sqlite, etcd = RecordWriter(Store(database)), RecordWriter(Replica(location).lead())
        client = EtcdClient(location)
        ratios = []
        try:
            for writer in (sqlite, etcd):
                writer.start()
                fill(writer)
            for number in range(ROUNDS):
                on_sqlite = 2 * rate(create_and_remove(sqlite))
                show("SQLite: durable creates and removals/s, 64 callers", f"{on_sqlite:.0f}")
                on_etcd = 2 * rate(create_and_remove(etcd))
                show("etcd: durable creates and removals/s, 64 callers", f"{on_etcd:.0f}")
                raw = 64 * rate(raw_group(client), 1)
                show("raw etcd: records/s in groups of 64, 1 in flight", f"{raw:.0f}")
                show("SQLite: 1,000 records in a transaction", f"{batch_seconds(sqlite, number) * 1000:.0f} ms")
                batch = batch_seconds(etcd, number)
                show("etcd: 1,000 records in a transaction", f"{batch * 1000:.0f} ms")
                start = time.perf_counter()
                client.call("KV", "Txn", raw_transaction(1000), 10.0)
                single = time.perf_counter() - start
                show("raw etcd: 1,000 records in a transaction", f"{single * 1000:.0f} ms")
                ratios.append((on_etcd / on_sqlite, on_etcd / raw, batch / single))
        finally:
            for writer in (sqlite, etcd):
                writer.stop()
            client.close()
            cluster.stop()
    for name, values in zip(
        ("etcd / SQLite", "etcd / raw etcd", "batch / raw batch"), zip(*ratios, strict=True), strict=True
    ):
        show(f"median of {name}", f"{statistics.median(values):.2f}")


if __name__ == "__main__":
    main()
