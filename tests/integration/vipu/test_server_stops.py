# SPDX-License-Identifier: GPL-3.0-or-later
"""Test stops and kills of the process vipu-server while clients write."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import Machines, Process, listed, partition, pod

Start = Callable[..., Process]


class Writers:
    """Threads that create and remove partitions until the server ends, and record the results."""

    def __init__(self, server: Process, prefix: str, enough: int) -> None:
        """Start the threads. ``enough`` acknowledged removals set the event of that name."""
        self.existing: set[str] = set()
        self.removed: set[str] = set()
        self.in_doubt: set[str] = set()
        self.codes: set[grpc.StatusCode] = set()
        self.enough = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(server.address, f"{prefix}-{worker}", enough))
            for worker in range(8)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, address: str, prefix: str, enough: int) -> None:
        with grpc.insecure_channel(address) as channel:
            stub = virmgrpc.stub(channel, "UserService")
            try:
                for n in range(10_000):
                    id = f"{prefix}-{n}"
                    self.in_doubt.add(id)
                    stub.CreatePartition(partition(id), timeout=10)
                    self.in_doubt.remove(id)
                    self.existing.add(id)
                    if n % 8:
                        self.existing.remove(id)
                        self.in_doubt.add(id)
                        request = virmgrpc.RemovePartitionRequest(partition_id=id, force=True)
                        stub.RemovePartition(request, timeout=10)
                        self.in_doubt.remove(id)
                        self.removed.add(id)
                    if len(self.removed) >= enough:
                        self.enough.set()
            except grpc.RpcError as error:
                self.codes.add(error.code())

    def join(self) -> None:
        """Wait for all threads."""
        for thread in self._threads:
            thread.join(20)

    def check(self, listed: set[str]) -> None:
        """Compare the recorded results with the listed partitions."""
        assert self.existing <= listed
        assert not self.removed & listed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_busy_server_stops_cleanly(vipu_process: Start, machines: Machines, number: signal.Signals) -> None:
    server = vipu_process()
    pod(server, machines)
    writers = Writers(server, "w", 20)
    assert writers.enough.wait(20)
    server.process.send_signal(number)
    assert server.process.wait(timeout=15) == 0
    writers.join()
    assert writers.codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert "Traceback" not in "".join(server.errors)
    found = listed(vipu_process())
    writers.check(found)
    assert found <= writers.existing | writers.in_doubt


def test_acknowledged_changes_survive_a_kill(vipu_process: Start, machines: Machines, tmp_path: Path) -> None:
    server = vipu_process()
    pod(server, machines)
    rounds: list[Writers] = []
    for number in range(3):
        rounds.append(Writers(server, f"r{number}", 40))
        assert rounds[-1].enough.wait(20)
        server.kill()
        rounds[-1].join()
        server.close()
        server = vipu_process()
        found = listed(server)
        for writers in rounds:
            writers.check(found)
        assert found <= set().union(*(writers.existing | writers.in_doubt for writers in rounds))
    assert server.stop() == 0
    connection = sqlite3.connect(tmp_path / "vipu-server.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
