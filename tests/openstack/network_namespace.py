# SPDX-License-Identifier: GPL-3.0-or-later
"""Network namespace for the separate cloud of a test, with its own interfaces and no used addresses."""

from __future__ import annotations

import subprocess
import sys

from tools.openstack.site import CHECKOUT

TOOL = [sys.executable, "-m", "tools.openstack"]


class NetworkNamespace:
    """Network namespace with a loopback interface only, and commands in it."""

    def __init__(self, seconds: int = 900) -> None:
        self.process = subprocess.Popen(
            ["unshare", "-n", "sh", "-c", f"ip link set lo up && echo ready && exec sleep {seconds}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        self.ready = self.process.stdout.readline() == "ready\n"

    def command(self, *line: str) -> list[str]:
        """Return the command line that runs a command in the namespace."""
        return ["nsenter", "-n", "-t", str(self.process.pid), *line]

    def run(self, *line: str, seconds: float = 120) -> str:
        """Run a command that must not fail and return its output."""
        result = subprocess.run(self.command(*line), capture_output=True, text=True, timeout=seconds, check=False)
        assert result.returncode == 0, f"{' '.join(line)}: {result.stderr}{result.stdout}"
        return result.stdout

    def tool(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m tools.openstack` and return the completed process."""
        line = self.command(*TOOL, *arguments)
        return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=400, check=False)

    def close(self) -> None:
        """Remove the namespace."""
        self.process.kill()
        self.process.wait()
