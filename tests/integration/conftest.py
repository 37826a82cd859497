# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures for tests with real servers."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.process import log
from openipu.vipu.server.initialise import initialise
from tests.integration.vipu_servers import InProcess, InstantLife, Machines, Process

# Modules that take longest, in this order. They start first, so that no worker is idle at the end.
LONGEST = (
    "bringup/test_bringup.py",
    "bringup/test_rack_devices.py",
    "cli/test_cli_commands.py",
    "cli/test_cli_failures.py",
    "agents/test_partition_life.py",
    "cli/test_cli_certificates.py",
    "cli/test_cli_secure.py",
    "cli/test_cli_endpoints.py",
    "bringup/test_generated_twin.py",
    "vipu/test_server_takeover.py",
    "vipu/test_server_backup.py",
    "pdu/test_pdu_messages.py",
    "faults/test_kill.py",
    "faults/test_pauses.py",
    "agents/test_silent_agents.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the order of modules: xdist would start those with the most tests first."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order modules: the longest first, then those with the most tests."""
    tests = Counter(item.path for item in items)
    first = {name: place for place, name in enumerate(LONGEST)}

    def place(path: Path) -> int:
        return first.get(f"{path.parent.name}/{path.name}", len(first))

    items.sort(key=lambda item: (place(item.path), -tests[item.path]))


@pytest.fixture(scope="session", autouse=True)
def quiet() -> None:
    """Log warnings and errors only."""
    log.configure("text", "warning")


@pytest.fixture
def vipu_server(tmp_path: Path) -> Iterator[Callable[..., InProcess]]:
    """Yield a factory of controllers in this process: ``vipu_server(life=InstantLife, **fields_of_Settings)``.

    Each one is also its own client: ``.address``, ``.user``, ``.admin``, ``.tenant``, ``.version``,
    ``.stop()``. Without ``life`` it uses the real partition life, which needs agents. A second call with
    the same ``database`` starts with the same records; stop the first controller before.
    """
    with contextlib.ExitStack() as stack:

        def make(database: Path | None = None, **options: Any) -> InProcess:
            server = InProcess(database or tmp_path / "vipu-server.db", **options)
            stack.callback(server.stop)
            return server

        yield make


@pytest.fixture
def instant_server(vipu_server: Callable[..., InProcess]) -> InProcess:
    """Return a controller whose partitions are ACTIVE at once, without agents."""
    return vipu_server(life=InstantLife)


@pytest.fixture
def vipu_process(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Yield a factory of ``vipu-server`` processes on one database: ``vipu_process("--secure", …)``."""
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
    """Yield 32 machines with their agents, for ``pod(server, machines)``."""
    made = Machines(32)
    yield made
    made.stop()
