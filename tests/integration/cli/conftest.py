# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: a controller with a rack twin of eight IPU-Machines, and servers for the tests of the client."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agents.agents_support import RackProcess
from tests.integration.cli import client_support
from tests.integration.cli.cli_support import Cli
from tests.integration.vipu_servers import Process, run


class Lab:
    """A rack, its controller and the address of the controller."""

    def __init__(self, rack: RackProcess, server: Process) -> None:
        self.rack, self.server = rack, server
        self.address = server.address


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Yield eight IPU-Machines that are not registered, and their controller."""
    folder = tmp_path_factory.mktemp("lab")
    with contextlib.ExitStack() as stack:
        rack = RackProcess(folder, 8)
        stack.callback(rack.close)
        database = folder / "vipu-server.db"
        assert run("--init", "--database", str(database)).returncode == 0
        server = Process("--database", str(database), "--partition-timeout", "3")
        stack.callback(server.stop)
        yield Lab(rack, server)


@pytest.fixture
def cli(lab: Lab, tmp_path: Path) -> Cli:
    """Return a command runner with the controller in its environment."""
    return Cli(tmp_path, lab.address)


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Yield a function that starts a server of the public services and returns its port."""
    with contextlib.ExitStack() as stack:

        def start(respond: Any = client_support.version, credentials: Any = None) -> int:
            port, stop = client_support.start(respond, credentials)
            stack.callback(stop)
            return port

        yield start
