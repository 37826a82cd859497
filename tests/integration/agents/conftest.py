# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for racks, controllers and agents that stop with their test."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agents.agents_support import Plane, RackProcess, Start


@pytest.fixture
def make_rack(tmp_path: Path) -> Iterator[Callable[..., RackProcess]]:
    racks: list[RackProcess] = []

    def make(count: int, **settings: Any) -> RackProcess:
        racks.append(RackProcess(tmp_path, count, **settings))
        return racks[-1]

    yield make
    for rack in racks:
        rack.close()


@pytest.fixture
def make_plane(tmp_path: Path, make_rack: Any) -> Iterator[Callable[..., Plane]]:
    planes: list[Plane] = []

    def make(rack: RackProcess, **options: Any) -> Plane:
        planes.append(Plane(tmp_path / "vipu.db", rack, **options))
        return planes[-1]

    yield make
    for plane in planes:
        plane.close()


@pytest.fixture(scope="session")
def eight_machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RackProcess]:
    rack = RackProcess(tmp_path_factory.mktemp("rack"), 8)
    yield rack
    rack.close()


@pytest.fixture
def plane(eight_machines: RackProcess, make_plane: Any) -> Plane:
    """Return a controller of eight machines, all up and without partitions."""
    eight_machines.stop_machines()
    eight_machines.start_machines()
    made: Plane = make_plane(eight_machines)
    made.wait_up()
    return made


@pytest.fixture
def start() -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        processes.append(
            subprocess.Popen(
                [*before, sys.executable, "-m", "openipu.vipu.agent.main", *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        process.communicate()
