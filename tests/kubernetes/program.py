# SPDX-License-Identifier: GPL-3.0-or-later
"""A program as a process that writes a log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.kubernetes import forked
from tests.waiting import until

START_SECONDS = 60.0
_END_SECONDS = 30.0


class Process(Protocol):
    """Part of ``subprocess.Popen`` that the tests use."""

    @property
    def pid(self) -> int:
        """Process id."""

    def poll(self) -> int | None:
        """Return the exit status, None if the process runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process ends, and return its exit status."""

    def send_signal(self, sig: int) -> None:
        """Send a signal to the process, if it runs."""


@dataclass(kw_only=True)
class Program(ABC):
    """Base class of programs.

    ``forked``: start a copy of a process that has imported the modules, which saves two seconds of CPU. Otherwise, a
    new interpreter starts.
    """

    process: Process | None = None
    forked: bool = True

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
        self.log_file.touch()
        start = forked.start if self.forked else _start
        process = self.process = start(module, arguments, self.log_file, {**os.environ, **(environment or {})})
        until(lambda: process.poll() is not None or ready(), START_SECONDS, lambda: self.log)
        assert process.poll() is None, self.log

    def kill(self) -> None:
        """Kill the process, as a power cut would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> int:
        """Stop the process and return its exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_END_SECONDS)


def _start(module: str, arguments: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> Process:
    with log_file.open("ab") as log:
        return subprocess.Popen([sys.executable, "-m", module, *arguments], stdout=log, stderr=log, env=environment)
