# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller with a rack twin of eight IPU-Machines, for all tests of the command lines."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_support import Cli
from vipu_servers import Process, run

sys.path.append(str(Path(__file__).parents[1] / "agents"))
from agents_support import RackProcess


class Lab:
    """The rack, the controller, and how to reach them."""

    def __init__(self, rack: RackProcess, server: Process) -> None:
        self.rack, self.server = rack, server
        self.address = server.address


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Eight IPU-Machines that the controller does not know yet."""
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
    """The commands, told of the controller by environment."""
    return Cli(tmp_path, lab.address)
