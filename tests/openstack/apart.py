# SPDX-License-Identifier: GPL-3.0-or-later
"""A network namespace for a cloud of a test's own: no address is taken there, and its interfaces are its own."""

from __future__ import annotations

import subprocess
import sys

from tools.openstack.site import CHECKOUT

TOOL = [sys.executable, "-m", "tools.openstack"]


class Apart:
    """The namespace, with loopback only; commands run in it."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", "ip link set lo up && echo ready && exec sleep 900"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.holder.stdout is not None
        self.there = self.holder.stdout.readline() == "ready\n"

    def command(self, *line: str) -> list[str]:
        """How a command is run in it."""
        return ["nsenter", "-n", "-t", str(self.holder.pid), *line]

    def run(self, *line: str, seconds: float = 120) -> str:
        """What a command prints that must not fail."""
        done = subprocess.run(self.command(*line), capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0, f"{' '.join(line)}: {done.stderr}{done.stdout}"
        return done.stdout

    def tool(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`python -m tools.openstack`."""
        line = self.command(*TOOL, *arguments)
        return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=400, check=False)

    def close(self) -> None:
        """End it."""
        self.holder.kill()
        self.holder.wait()
