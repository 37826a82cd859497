# SPDX-License-Identifier: GPL-3.0-or-later
"""Load of many idle connections."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import grpc
import psutil

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.vipu_servers import Process
from tests.waiting import until

PROGRAM = Path(__file__).with_name("hold_connections.py")
MEGABYTE = 1 << 20
FEW = 16  # files that other calls open and close


# glibc gives each thread its own arena, and a full pool fills many of them in turn. The size of the process only
# reflects its memory use when there are few arenas.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


def check(server: Process, connections: int, processes: int) -> None:
    """Open and close many connections six times. Other clients are served, and no files or memory leak."""
    process = psutil.Process(server.process.pid)
    served(server)
    files, memory = process.num_fds(), []
    for _ in range(6):
        clients = [start(server.address, connections // processes) for _ in range(processes)]
        try:
            for client in clients:
                assert client.stdout.readline() == "connected\n"
            until(lambda: process.num_fds() >= files + connections - FEW, 60)
            served(server)
        finally:
            for client in clients:
                client.communicate()  # closes its standard input, which ends it
        until(lambda: process.num_fds() <= files + FEW, 60)
        served(server)
        memory.append(process.memory_info().rss)
    # The memory that the library caches is stable after some repetitions.
    assert memory[5] < memory[2] + 32 * MEGABYTE, memory
    assert server.stop() == 0
    assert "Traceback" not in "".join(server.errors)


def served(server: Process) -> None:
    """Check that a call on a new connection gets a response within 10 seconds."""
    with grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        virmgrpc.stub(channel, "VersionService").GetVersion(virmgrpc.VersionRequest(), timeout=10)


def start(address: str, connections: int) -> subprocess.Popen[str]:
    """Start a process that holds connections until its standard input is closed."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), address, str(connections)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
