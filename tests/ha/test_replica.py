# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller on etcd whose nodes do not respond, and stop signals before it leads."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import grpc
import pytest

from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.api.services import Services
from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.server import replica
from openipu.vipu.server.controller import Settings
from openipu.vipu.storage.etcd import content, mirror
from openipu.vipu.storage.etcd.client import EtcdClient, EtcdUnavailableError
from openipu.vipu.storage.etcd.election import Leadership
from openipu.vipu.storage.etcd.keys import Keys, Location
from openipu.vipu.storage.etcd.mirror import Content, Mirror
from openipu.vipu.storage.interface import LeadershipLostError, NotLeaderError, StoreError
from tests.integration.vipu_servers import environment
from tests.ports import free_port
from tests.waiting import until

THREADS = {"calls", "lease", "lifecycle", "metrics", "writer"}  # of a controller that begins to lead
LEASE_SECONDS = 60  # longer than a test: only a controller that resigns leaves no leader key


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


class Stop:
    """Stop signals that a test sends."""

    def __init__(self) -> None:
        self.sent = False

    def wait(self, seconds: float) -> bool:
        return self.sent


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    made = Stop()
    monkeypatch.setattr(replica, "StopSignals", lambda: made)
    return made


def run(location: Location, folder: Path, metrics: MetricsAddress | None = None) -> Content:
    """Run a controller until its end, and return the content of the store then."""
    content.initialise(location)
    settings = Settings(folder / "unused.db", ListenAddress("127.0.0.1", 0), metrics=metrics)
    replica.Replica(settings, location, LEASE_SECONDS, "").run()
    client = EtcdClient(location)
    try:
        return mirror.read(client, Keys(location.prefix))
    finally:
        client.close()


def test_a_stop_signal_during_the_election_ends_the_leadership(
    location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Stop
) -> None:
    campaign, won = Leadership.campaign, []

    def stopped(leadership: Leadership) -> bool:
        stop.sent = True
        won.append(campaign(leadership))
        return won[-1]

    monkeypatch.setattr(Leadership, "campaign", stopped)
    found = run(location, tmp_path)
    assert won == [True]
    assert found.meta is not None
    assert found.meta["epoch"] == 0, "no controller has led"
    assert found.leader is None


@pytest.mark.parametrize("error", [NotLeaderError, LeadershipLostError])
def test_a_stop_signal_before_the_loss_of_the_leadership_ends_the_program(
    location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Stop, error: type[StoreError]
) -> None:
    def lost(*_: object) -> NoReturn:
        stop.sent = True
        raise error

    def restart() -> NoReturn:
        raise AssertionError("the program starts again")

    monkeypatch.setattr(replica, "EtcdStore", lost)
    monkeypatch.setattr(replica, "restart", restart)
    assert run(location, tmp_path).leader is None


def own_threads() -> set[str]:
    """Return the names of the threads of this project."""
    return {each.name for each in threading.enumerate() if each.name in THREADS}


@pytest.mark.parametrize("error", [LeadershipLostError, RuntimeError])
def test_a_controller_that_fails_after_its_start_began_stops_all_parts(
    location: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: Stop, error: type[Exception]
) -> None:
    started: list[set[str]] = []

    def fail(*_: object) -> NoReturn:
        started.append(own_threads())
        stop.sent = True
        raise error

    port = free_port()
    monkeypatch.setattr(Services, "start", fail)
    with contextlib.suppress(RuntimeError):
        run(location, tmp_path, MetricsAddress("127.0.0.1", port))
    assert started == [THREADS]
    until(lambda: not own_threads(), what="all threads end")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


RESTARTED = """
import os, signal, sys
from openipu.vipu.api.services import Services
from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.server import replica

signal.pthread_sigmask(signal.SIG_BLOCK, replica.STOP_SIGNALS)
stop = replica.StopSignals()
if sys.orig_argv[-1] == "first":
    os.kill(os.getpid(), signal.SIGTERM)
    assert stop.wait(20)
    sys.orig_argv[-1] = "second"
    replica.restart()
print(sys.orig_argv[-1], stop.wait(5))
"""


def test_a_stop_signal_is_not_lost_when_the_program_starts_again() -> None:
    command = [sys.executable, "-c", RESTARTED, "first"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())
    assert ended.stdout.splitlines()[-1:] == ["second True"], ended.stderr
