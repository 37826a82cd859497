# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for tests with real servers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vipu_servers import InProcess, InstantLife, Machines, Process

from openipu.vipu import log
from openipu.vipu.initialise import initialise


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """Log as a server does that has nothing to complain of."""
    log.configure("text", "warning")


@pytest.fixture
def vipu_server(tmp_path: Path) -> Iterator[Callable[..., InProcess]]:
    """Make controllers in this process: ``vipu_server(life=InstantLife, **fields_of_Settings)``.

    Each is a client of itself too: ``.address``, ``.user``, ``.admin``, ``.tenant``, ``.version``,
    ``.stop()``. Without ``life`` it has the real one, whose agents must be somewhere. The second call
    with the same ``database`` starts again on the same records (stop the first before).
    """
    with contextlib.ExitStack() as stack:

        def make(database: Path | None = None, **options: Any) -> InProcess:
            server = InProcess(database or tmp_path / "vipu-server.db", **options)
            stack.callback(server.stop)
            return server

        yield make


@pytest.fixture
def instant_server(vipu_server: Callable[..., InProcess]) -> InProcess:
    """A controller whose partitions are ACTIVE at once, without any agent."""
    return vipu_server(life=InstantLife)


@pytest.fixture
def vipu_process(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Start ``vipu-server`` processes on one database: ``vipu_process("--secure", …)``; ended after the test."""
    database = tmp_path / "vipu-server.db"
    processes: list[Process] = []

    def make(*options: str, **arguments: Any) -> Process:
        initialise(database)
        processes.append(Process("--database", str(database), *options, **arguments))
        return processes[-1]

    yield make
    for process in processes:
        process.stop()


@pytest.fixture(scope="session")
def machines() -> Iterator[Machines]:
    """Thirty-two machines with their agents, for ``pod(server, machines)``."""
    made = Machines(32)
    yield made
    made.stop()
