# SPDX-License-Identifier: GPL-3.0-or-later
"""A program as a process that writes a log."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import until

START_SECONDS = 60.0


@dataclass(kw_only=True)
class Program(ABC):
    """Base class of programs."""

    process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def log_file(self) -> Path:
        """File with the output of the program."""

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def launch(
        self,
        module: str,
        arguments: Sequence[str],
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a module as a process, and wait until it is ready. ``environment``: additional variables."""
        command = [sys.executable, "-m", module, *arguments]
        with self.log_file.open("ab") as log:
            process = self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, **(environment or {})}
            )
        until(lambda: process.poll() is not None or ready(), START_SECONDS, lambda: self.log)
        assert process.poll() is None, self.log

    def kill(self) -> None:
        """Kill the process, as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """Stop the process and return its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(30)
