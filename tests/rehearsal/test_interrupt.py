# SPDX-License-Identifier: GPL-3.0-or-later
"""An interrupt of ``openipu-pod rehearse``: the message names the phase, and no process is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests import waiting
from tests.rehearsal.conftest import Installation

PLAY = " s  Check the inventory"  # the first play, at its end


def left(folder: Path) -> list[str]:
    """Return the command lines of the running processes that work in a folder or name it."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = " ".join(process.cmdline())
            if process.pid != os.getpid() and (str(folder) in line or process.cwd().startswith(str(folder))):
                found.append(line)
    return found


@contextlib.contextmanager
def rehearsal(installation: Installation, pod: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Start a rehearsal in a process group of its own, as a shell does, and yield it with its messages."""
    messages = installation.folder / "messages"
    command = [sys.executable, "-m", "openipu.pod_files.cli.main", "rehearse", str(pod), *options]
    with messages.open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=installation.folder,
            env=installation.environment(),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    try:
        yield process, messages
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_an_interrupt_names_the_phase_and_leaves_nothing(installation: Installation, small: Path) -> None:
    with rehearsal(installation, small) as (process, messages):
        waiting.until(lambda: PLAY in messages.read_text(), 200, messages.read_text)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
        waiting.until(lambda: "Stopping the twin …" in messages.read_text(), 60, messages.read_text)
        os.killpg(process.pid, signal.SIGINT)  # an impatient user
        assert process.wait(timeout=120) == 128 + signal.SIGINT, messages.read_text()
    *_lines, last = messages.read_text().splitlines()
    assert last.startswith("Interrupted during 'Running site.yml in check mode: ")
    assert last.endswith("'; the twin was stopped.")
    assert "Aborted" not in messages.read_text()
    waiting.until(lambda: not left(installation.folder), 20, lambda: "\n".join(left(installation.folder)))
    assert not (installation.folder / "t").exists()
