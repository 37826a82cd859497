# SPDX-License-Identifier: GPL-3.0-or-later
"""SIGINT of commands that run until they are interrupted, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

START = """
import os, signal, threading
from openipu.vipu.cli.interruption import Interruption

class Call:
    cancelled = threading.Event()

    def cancel(self):
        self.cancelled.set()

interruption = Interruption()
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
"""


def run(lines: str) -> str:
    """Return the output of a program."""
    done = subprocess.run([sys.executable, "-c", START + lines], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_pause_ends() -> None:
    assert run("interrupt(); interruption.pause(60); print(interruption.received)") == "True\n"


def test_the_present_call_is_cancelled() -> None:
    assert run("interruption.cancels(Call()); interrupt(); print(Call.cancelled.wait(10))") == "True\n"


def test_a_later_call_is_cancelled() -> None:
    program = "interrupt(); interruption.pause(60); interruption.cancels(Call()); print(Call.cancelled.wait(10))"
    assert run(program) == "True\n"


def test_a_job_in_the_background_is_not_interrupted() -> None:
    program = "Interruption(); interrupt(); print('running')"
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = subprocess.run(
        [sys.executable, "-c", ignoring + START + program], capture_output=True, text=True, timeout=20
    )
    assert (done.returncode, done.stdout) == (0, "running\n")
