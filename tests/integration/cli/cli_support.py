# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the real commands as processes, with a real controller and a rack twin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent


class Cli:
    """Runner of ``vipu`` and ``vipu-admin`` in a separate home folder."""

    def __init__(self, home: Path, address: str = "", **environment: str) -> None:
        self.home = home
        host, _, port = address.rpartition(":")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VIPU_")}
        where = {"VIPU_CLI_API_HOST": host, "VIPU_CLI_API_PORT": port} if address else {}
        self.environment = {**kept, **where, "HOME": str(home), **environment}

    def __call__(self, line: str, *more: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command line and check its exit status."""
        program, *arguments = line.split()
        done = subprocess.run(
            [str(BIN / program), *arguments, *more],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.home,
            env={**self.environment, **environment},
        )
        assert done.returncode == status, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def out(self, line: str, *more: str, **environment: str) -> str:
        """Return the output of a command that succeeds without errors or warnings. Written files are no warning."""
        done = self(line, *more, **environment)
        assert [each for each in done.stderr.splitlines() if not each.startswith("Note: wrote ")] == []
        return done.stdout

    def json(self, line: str, *more: str) -> Any:
        """Return the output of a command with ``-o json``."""
        return json.loads(self.out(line, "-o", "json", *more))

    def failed(self, line: str, *more: str, **environment: str) -> str:
        """Return the single error line of a command that fails."""
        done = self(line, *more, status=1, **environment)
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1 and done.stderr.endswith(".\n"), done.stderr
        return done.stderr.rstrip("\n")

    def failed_on_terminal(self, line: str) -> str:
        """Return the single error line of a command that fails, as a person sees it."""
        program, *arguments = line.split()
        own, terminal = os.openpty()
        try:
            command = [str(BIN / program), *arguments]
            done = subprocess.run(command, stderr=terminal, timeout=60, cwd=self.home, env=self.environment)
            os.close(terminal)
            text = os.read(own, 1 << 16).decode()
        finally:
            os.close(own)
        assert done.returncode == 1
        assert text.count("\n") == 1, text
        return text.rstrip("\r\n")

    @property
    def conf(self) -> Path:
        """Folder of the IPUoF configuration."""
        return self.home / ".ipuof.conf.d"

    def files(self) -> list[str]:
        """Return the names of the files in that folder."""
        return sorted(path.name for path in self.conf.iterdir()) if self.conf.exists() else []


def cells(text: str) -> list[list[str]]:
    """Return the rows of a printed table, header first, without rules."""
    return [
        [cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.strip() and set(line) != {"-"}
    ]
