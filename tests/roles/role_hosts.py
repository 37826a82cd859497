# SPDX-License-Identifier: GPL-3.0-or-later
"""Run `python -m tools.hosts`, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
STATE = CHECKOUT / ".cache" / "hosts" / "tests"  # the place of make test-roles


def hosts(command: str, *arguments: str, state: Path = STATE, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """What became of it, as far as it came in that time; both outputs are one, as on a terminal."""
    line = [sys.executable, "-m", "tools.hosts", command, "--state-dir", str(state), *arguments]
    try:
        return subprocess.run(
            line,
            cwd=CHECKOUT,
            env={**os.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        told = (late.stdout or b"").decode(errors="replace")
        return subprocess.CompletedProcess(line, -1, f"{told}\nIt was ended after {seconds:.0f} s.\n")
