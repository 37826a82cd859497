# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs as copies of a process that has imported their modules. Each of them has a process of its own.

The imports of a program take two seconds of CPU, and the tests start several hundred programs.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

# "__main__" keeps the copies from importing the main module of the tests.
_PROGRAMS = ("operator", "proxy", "launcher")
_PRELOADED = ["__main__", __name__, *(f"openipu.kubernetes.{each}.main" for each in _PROGRAMS)]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(_PRELOADED)


class Forked:
    """A running copy. Its methods are those of ``subprocess.Popen``, and several threads may call them."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process
        self._lock = threading.Lock()  # one thread reads the exit status

    @property
    def pid(self) -> int:
        """Process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit status, None if the process runs."""
        with self._lock:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process ends, and return its exit status. Raises TimeoutExpired."""
        with self._lock:
            self._process.join(timeout)
            status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        """Send a signal to the process, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def start(module: str, arguments: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> Forked:
    """Start the command ``main`` of a module. ``log_file`` exists. ``environment``: all variables."""
    process = _context.Process(
        target=_run, args=(module, list(arguments), str(log_file), dict(environment)), name=module, daemon=True
    )
    process.start()
    return Forked(process)


def _run(module: str, arguments: list[str], log_file: str, environment: dict[str, str]) -> None:
    """Become the program."""
    log = os.open(log_file, os.O_WRONLY | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(log, stream.fileno())
    os.close(log)
    os.environ.clear()
    os.environ.update(environment)
    importlib.import_module(module).main(arguments, prog_name=module)
