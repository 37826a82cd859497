# SPDX-License-Identifier: GPL-3.0-or-later
"""Run `python -m tools.hosts` in tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import ROOT

STATE = ROOT / ".cache" / "hosts" / "tests"  # environment of make test-roles


def hosts(command: str, *arguments: str, state: Path = STATE, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a command for at most ``seconds``. Return the completed process, with stderr in stdout."""
    line = [sys.executable, "-m", "tools.hosts", command, "--state-dir", str(state), *arguments]
    try:
        return subprocess.run(
            line,
            cwd=ROOT,
            env={**os.environ, "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        return subprocess.CompletedProcess(line, -1, f"{output}\nStopped after {seconds:.0f} s.\n")
