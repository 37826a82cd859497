# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the programs of the build, with their progress."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

import click

from .pages import ROOT

_INTERVAL = 4.0  # seconds between two lines of progress
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Step(NamedTuple):
    """One program of the build: its purpose for the user, and its arguments."""

    title: str
    command: tuple[str, ...]


class BuildError(click.ClickException):
    """Raised when a program of the build fails; the message has its output."""


def run(*steps: Step, logs: Path) -> None:
    """Run programs concurrently, and print a line about each that runs for more than a few seconds.

    The output is long: it goes to a file and is printed only on failure.

    Raises:
        BuildError: a program failed. The others are ended.
    """
    logs.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"ANSIBLE_COLLECTIONS_PATH": sysconfig.get_path("purelib"), "NO_COLOR": "1"}
    processes: dict[Step, tuple[subprocess.Popen[bytes], Path]] = {}
    try:
        for number, step in enumerate(steps):
            log = logs / f"{Path(step.command[0]).name}-{number}.log"
            with log.open("wb") as output:
                processes[step] = (
                    subprocess.Popen(step.command, cwd=ROOT, env=environment, stdout=output, stderr=output),  # noqa: S603
                    log,
                )
        _wait(processes)
    finally:
        for process, _ in processes.values():
            if process.poll() is None:
                process.terminate()
                process.wait()


def _wait(processes: dict[Step, tuple[subprocess.Popen[bytes], Path]]) -> None:
    start = time.monotonic()
    for step in processes:
        click.echo(f"{step.title} …")
    for step, (process, log) in processes.items():
        while True:
            try:
                status = process.wait(_INTERVAL)
                break
            except subprocess.TimeoutExpired:
                click.echo(f"  {time.monotonic() - start:3.0f} s  {_last_line(log) or step.title}")
        if status:
            raise BuildError(f"{step.title} failed:\n{log.read_text()}")


def _last_line(log: Path) -> str:
    """Return the last line of a log, as a terminal shows it."""
    lines = [line.strip() for line in re.split(r"[\r\n]", _CONTROL.sub("", log.read_text(errors="replace")))]
    return next((line for line in reversed(lines) if line), "")[:100]
