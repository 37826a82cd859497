# SPDX-License-Identifier: GPL-3.0-or-later
"""Run suites, one after the other, within a budget of time."""

from __future__ import annotations

import contextlib
import datetime
import enum
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import trace
from .fingerprint import RECORD, fingerprint, git, tracked, versions
from .record import PassedRun, load, save, sort_by_last_pass
from .suite import Suite, undeclared

# Variables of the caller that change what a suite runs.
_UNSAFE = (
    "CORE",
    "HOSTS_CACHE",
    "INVENTORY",
    "KILLS",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "MFLAGS",
    "OPENIPU_PEERS",
    "PYTHON",
    "ROLE",
)
# What ends the processes of a command, and the seconds until the next signal. Tests clean up after SIGINT.
STOP_SIGNALS = ((signal.SIGINT, 20.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))
MARGIN = 1.25  # a suite starts only when the budget leaves it this many times its expected duration


class State(enum.StrEnum):
    """Result of a suite in one run of the command."""

    PASSED = "passed"
    PROVED = "proved before"  # it passed with the same inputs, and was not run
    FAILED = "FAILED"
    UNVERIFIED = "NOT VERIFIED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the table."""

    suite: str
    state: State
    seconds: int = 0
    passed: int = 0
    skipped: int = 0
    reason: str = ""


def clean(root: Path) -> bool:
    """Return whether the checkout has no changes besides the record."""
    return not git(root, "status", "--porcelain", "--", ".", f":!{RECORD}").strip()


def missing(suite: Suite, install_error: str = "") -> str:
    """Return why a suite cannot run on this machine; empty when it can. ``install_error``: result of ``install``."""
    if suite.root and os.geteuid():
        return "it needs root"
    absent = [name for name, version in versions(suite.packages).items() if not version]
    if absent and install_error:
        return f"packages cannot be installed: {install_error}"
    return f"packages are not installed: apt install {' '.join(absent)}" if absent else ""


def install(suites: Sequence[Suite]) -> str:
    """Install the Debian packages of suites, without starting their services. Needs root.

    Return the reason when apt-get fails, else an empty string.
    """
    names = sorted({name for suite in suites for name, version in versions(suite.packages).items() if not version})
    if names and not os.geteuid():
        environment = {**os.environ, "RUNLEVEL": "1", "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *names]):
            try:
                subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True, check=True)  # noqa: S603, S607
            except subprocess.CalledProcessError as error:
                lines = error.stderr.splitlines() or [f"status {error.returncode}"]
                return f"apt-get {command[0]}: {lines[-1]}"
            except FileNotFoundError:
                return "apt-get does not exist on this machine"
    return ""


def execute(suite: Suite, root: Path, seconds: float | None = None) -> Outcome:
    """Run one suite and record it when it passed.

    It counts as passed when its commands succeed, and no test was skipped without a declared reason. No
    filter may be set, no undeclared file read, and the inputs must be the same afterwards. It is recorded
    when the checkout is clean, too. ``seconds``: the run ends then, and the suite is not verified.
    """
    folder = root / ".cache" / "suites" / suite.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        if os.environ.get(name):
            return Outcome(suite.name, State.UNVERIFIED, reason=f"{name} is set: unset it")
    committed, before, names = clean(root), fingerprint(suite, root), tracked(root)
    head = git(root, "rev-parse", "HEAD").strip()
    traced = trace.records_reads(folder)
    trace.start(root, names)
    began = time.monotonic()
    for command in suite.commands:
        code = _run(command, root, folder, None if seconds is None else began + seconds - time.monotonic())
        if code != 0:
            break
    took = round(time.monotonic() - began)
    read = trace.files_read(root, names)
    if code is None:
        return Outcome(suite.name, State.UNVERIFIED, took, reason="the budget ended")
    sessions = [json.loads(line) for line in _lines(folder / "report.jsonl")]
    passed, skips = sum(each["passed"] for each in sessions), [each for one in sessions for each in one["skipped"]]
    result = Outcome(suite.name, State.PASSED, took, passed, len(skips))
    failed = "it" if command == suite.command else f"make {suite.before}"
    faults = [f"{failed} ended with status {code}"] if code else []
    if suite.sessions and not (sessions and passed):
        faults.append("no session of pytest reported a passed test")
    faults += [f"{each['failed']} tests failed" for each in sessions if each["failed"]]
    faults += [
        f"{each['deselected']} tests were deselected" for each in sessions if each["deselected"] and not suite.filter
    ]
    faults += [f"unexpected skip: {reason}" for reason in unexpected(suite, skips)]
    faults += [f"filtered: {each['filter']}" for each in sessions if each["filter"] not in ("", suite.filter)]
    if hidden := undeclared(suite, read):
        (folder / "undeclared").write_text("\n".join(hidden) + "\n")
        faults.append(f"undeclared input: {', '.join(hidden[:5])}; see .cache/suites/{suite.name}/undeclared")
    if not faults and fingerprint(suite, root) != before:
        faults.append("its inputs changed while it ran")
    if not faults and git(root, "rev-parse", "HEAD").strip() != head:
        faults.append("another commit was checked out while it ran")
    if faults:
        return Outcome(suite.name, State.FAILED, took, passed, len(skips), "; ".join(faults[:5]))
    if not (committed and clean(root)):
        return Outcome(suite.name, State.PASSED, took, passed, len(skips), "not recorded: uncommitted changes")
    if not traced:
        return Outcome(suite.name, State.PASSED, took, passed, len(skips), "not recorded: no access times here")
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    save(root, suite.name, PassedRun(before, date, head, took, passed, len(skips)))
    return result


def unexpected(suite: Suite, reasons: Sequence[str]) -> list[str]:
    """Return the reasons of skips that a suite does not declare."""
    return [reason for reason in reasons if not any(re.search(pattern, reason) for pattern in suite.skips)]


def run(
    suites: Sequence[Suite],
    root: Path,
    *,
    changed: bool,
    budget: float | None,
    show: Callable[[Outcome], None],
    install_error: str = "",
    emulated: bool = True,
) -> list[Outcome]:
    """Run suites in order: those that always run, then by the date of the last pass, oldest first.

    Args:
        changed: skip suites that passed with the same inputs before.
        budget: seconds for all of them; a suite that does not fit is not verified.
        show: called with each outcome as soon as it is known.
        install_error: result of ``install``, the reason for suites without their packages.
        emulated: run suites that emulate a machine, too. Without it, they are not verified.
    """
    record, end = load(root), None if budget is None else time.monotonic() + budget
    outcomes = []
    always, rest = [each for each in suites if each.always], [each for each in suites if not each.always]
    for suite in [*always, *sort_by_last_pass(rest, record)]:
        known = record.get(suite.name)
        left = None if end is None else end - time.monotonic()
        expected = known.seconds if known else suite.seconds
        reason = missing(suite, install_error)
        if changed and not suite.always and known and known.fingerprint == fingerprint(suite, root):
            outcome = Outcome(suite.name, State.PROVED, known.seconds, known.passed, known.skipped, known.date)
        elif suite.emulated and not emulated:
            outcome = Outcome(suite.name, State.UNVERIFIED, reason="it emulates a machine, so it runs by hand")
        elif reason:
            outcome = Outcome(suite.name, State.UNVERIFIED, reason=reason)
        elif left is not None and left < expected * MARGIN:
            outcome = Outcome(
                suite.name, State.UNVERIFIED, reason=f"it takes {expected} s, the budget leaves {left:.0f} s"
            )
        else:
            outcome = execute(suite, root, left)
        outcomes.append(outcome)
        show(outcome)
    return outcomes


def _run(command: list[str], root: Path, folder: Path, seconds: float | None) -> int | None:
    """Run a command in a process group of its own; return its status, None when the time ended."""
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _UNSAFE},
        "PYTHONPYCACHEPREFIX": str(folder / "pycache"),
        "SUITE_REPORT": str(folder / "report.jsonl"),
    }
    process = subprocess.Popen(command, cwd=root, env=environment, start_new_session=True)  # noqa: S603
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End all processes of a command's group.

    The kernel offers no wait for a group with members that are not children, so this polls, bounded in time.
    """
    for number, seconds in STOP_SIGNALS:
        if process.poll() is None or _group_exists(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if process.poll() is not None and not _group_exists(process.pid):
                return
            time.sleep(0.1)


def _group_exists(group: int) -> bool:
    """Return whether a process group has members."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []
