# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a rehearsal: begin and end of phases, signs of life, and the message after an interrupt."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openipu.pod_files.rehearsal import command
from openipu.pod_files.rehearsal.progress import Progress
from openipu.twin.launch.launcher import Twin
from tests import ROOT, waiting

RACK = ROOT / "inventory/pod64"


def test_a_phase_is_reported_at_its_begin_and_end() -> None:
    lines: list[str] = []
    progress = Progress(lines.append)
    with progress.signs_of_life(), progress.phase("Starting the twin"):
        assert lines == ["Starting the twin …"]
        with progress.phase("Searching"):
            progress.part("first")
            assert progress.phase_text == "Searching: first"
        assert progress.phase_text == "Starting the twin"
    assert progress.phase_text == "Starting the twin"
    assert [re.sub(r"^ *\d+ s", "0 s", line) for line in lines] == [
        "Starting the twin …",
        "Searching …",
        "0 s  Searching: ended",
        "0 s  Starting the twin: ended",
    ]


def test_signs_of_life_name_the_phase_and_its_part() -> None:
    lines: list[str] = []
    progress = Progress(lines.append, 0.01)
    with progress.signs_of_life(), progress.phase("Running site.yml"):
        progress.part("Configure the PDU")
        waiting.until(lambda: len(lines) > 2, 30)
    begin, *signs, end = lines
    assert begin == "Running site.yml …"
    assert {re.sub(r"^ *\d+ s", "0 s", line) for line in signs} == {"0 s  Running site.yml: Configure the PDU …"}
    assert end.endswith("  Running site.yml: ended")


def test_the_phase_of_an_exception_is_known() -> None:
    progress = Progress(print)

    def fail() -> None:
        with progress.phase("Starting the twin"), progress.phase("Searching"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    with progress.phase("Stopping the twin"):
        pass
    assert progress.phase_text == "Searching"


@pytest.mark.parametrize(
    ("phase", "running", "message"),
    [
        ("", False, "Interrupted; no twin was started."),
        ("Running site.yml", False, "Interrupted during 'Running site.yml'; the twin was stopped."),
        ("Running site.yml", True, "Interrupted during 'Running site.yml'; the twin is running. Stop it: "),
    ],
)
def test_an_interrupt_is_reported(tmp_path: Path, monkeypatch, capsys, phase: str, running: bool, message: str) -> None:
    def interrupted(_pod: object, _options: object, progress: Progress) -> None:
        if not phase:
            raise KeyboardInterrupt
        with progress.phase(phase):
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "rehearse", interrupted)
    monkeypatch.setattr(Twin, "running", lambda _twin: ["agents"] if running else [])
    monkeypatch.setattr(command.network_namespace, "enter", lambda: None)
    assert command.run(RACK / "pod.yml", tmp_path / "twin", [], keep=False, output="text") == 128 + signal.SIGINT
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(message)
    assert (last == message) is not running


PROGRAM = """
import os, signal
from openipu.process.signals import one_interrupt
try:
    with one_interrupt():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            print("ignored")
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            print("cleaned")
except KeyboardInterrupt:
    print("interrupted", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_a_second_interrupt_does_not_end_the_cleanup() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "cleaned\ninterrupted True\n"


def test_an_ignored_interrupt_is_still_ignored() -> None:
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$0" -c "$1"', sys.executable, PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "ignored\ncleaned\n"
