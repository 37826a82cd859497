# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command of the rack_tool substitute on a machine, over SSH as the user of the gateway."""

from __future__ import annotations

import subprocess
import sys

OPTIONS = [
    "-o",
    "BatchMode=yes",
    "-o",
    "StrictHostKeyChecking=accept-new",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "LogLevel=ERROR",
]


def main(versions: str, command: str, name: str, address: str, *arguments: str) -> int:
    """Run the command at the address, and return its exit code."""
    line = ["sudo", "/usr/local/sbin/gateway", command, *({"upgrade": [versions]}.get(command) or arguments)]
    return subprocess.run(["ssh", *OPTIONS, f"itadmin@{address}", *line], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
