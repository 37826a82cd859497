# SPDX-License-Identifier: GPL-3.0-or-later
"""Start of a controller on etcd whose nodes do not respond."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.server import replica
from openipu.vipu.server.controller import Settings
from openipu.vipu.storage.etcd.client import EtcdUnavailableError
from openipu.vipu.storage.etcd.keys import Location
from openipu.vipu.storage.etcd.mirror import Mirror
from openipu.vipu.storage.interface import StoreError


class Clock:
    """Clock and stop signals of a replica: only attempts and waits take time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return False


def test_the_start_limit_includes_the_time_of_attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clock, starts = Clock(), []

    def start(mirror: Mirror) -> None:
        starts.append(clock.now)
        clock.now += 12  # no node responds
        raise EtcdUnavailableError("no response", grpc.StatusCode.DEADLINE_EXCEEDED)

    monkeypatch.setattr(replica, "time", clock)
    monkeypatch.setattr(replica, "StopSignals", lambda: clock)
    monkeypatch.setattr(Mirror, "start", start)
    settings = Settings(tmp_path / "unused.db", ListenAddress("127.0.0.1", 0))
    with pytest.raises(StoreError, match="no response"):
        replica.Replica(settings, Location(("127.0.0.1:9",)), 3, "").run()
    assert starts == [0, 13, 26]
