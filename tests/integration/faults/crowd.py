# SPDX-License-Identifier: GPL-3.0-or-later
"""A crowd of connections that want nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import grpc
import psutil
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from vipu_servers import Process
from waiting import until

PROGRAM = Path(__file__).with_name("crowd_part.py")
MEGABYTE = 1 << 20
FEW = 16  # files that come and go with the calls of others


# glibc gives every thread that comes along an arena of its own, and a full house fills many by turns: what
# is used shows in the size of the process only where there are few.
ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


def check(server: Process, connections: int, processes: int) -> None:
    """Let a crowd come six times; others are served meanwhile, and nothing is left of it afterwards."""
    process = psutil.Process(server.process.pid)
    served(server)
    files, memory = process.num_fds(), []
    for _ in range(6):
        crowd = [start(server.address, connections // processes) for _ in range(processes)]
        try:
            for part in crowd:
                assert part.stdout.readline() == "connected\n"
            until(lambda: process.num_fds() >= files + connections - FEW, 60)
            served(server)
        finally:
            for part in crowd:
                part.communicate()  # closes its standard input, at which it ends
        until(lambda: process.num_fds() <= files + FEW, 60)
        served(server)
        memory.append(process.memory_info().rss)
    # How much the library keeps for the next crowd is settled after some of them.
    assert memory[5] < memory[2] + 32 * MEGABYTE, memory
    assert server.stop() == 0
    assert "Traceback" not in "".join(server.errors)


def served(server: Process) -> None:
    """A call on a new connection is answered, soon."""
    with grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        begin = time.monotonic()
        virmgrpc.stub(channel, "VersionService").GetVersion(virmgrpc.VersionRequest(), timeout=10)
        assert time.monotonic() - begin < 5


def start(address: str, connections: int) -> subprocess.Popen[str]:
    """A process that holds connections until its standard input is closed."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), address, str(connections)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
