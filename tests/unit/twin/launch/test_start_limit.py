# SPDX-License-Identifier: GPL-3.0-or-later
"""Limit for the start of a twin: time without progress, because a large rack takes minutes on a busy computer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.process.background import ProcessError, Service
from openipu.twin.launch import launcher

WAIT = "import signal; signal.pause()"


class Starting(Service):
    """Process with more sockets at each look, up to five."""

    looks = 0

    def open_files(self) -> int:
        Starting.looks += 1
        return min(Starting.looks, 5)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(launcher, "_QUIET_SECONDS", 0.05)
    monkeypatch.setattr(Starting, "looks", 0)
    made = Starting("the rack", tmp_path / "r.pid", tmp_path / "r.log", [sys.executable, "-c", WAIT])
    yield made
    made.stop()


def test_a_start_takes_as_long_as_it_makes_progress(service: Service) -> None:
    started: list[Service] = []
    launcher.Twin._launch(service, lambda: Starting.looks == 5, started, print)
    assert started == [service]


def test_a_start_without_progress_is_reported(service: Service) -> None:
    with pytest.raises(ProcessError, match=r"Cannot start the rack: no progress within 0\.05 s"):
        launcher.Twin._launch(service, lambda: False, [], print)
    assert Starting.looks == 6
