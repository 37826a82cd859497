# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of suites that passed: ``tests/passed.json``, committed with the sources."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from .fingerprint import RECORD
from .suite import Suite


@dataclass(frozen=True, slots=True)
class PassedRun:
    """One run of a suite that passed."""

    fingerprint: str
    date: str  # UTC, ISO 8601
    commit: str
    seconds: int
    passed: int  # tests
    skipped: int


def load(root: Path) -> dict[str, PassedRun]:
    """Return the last passed run by the name of the suite."""
    file = root / RECORD
    if not file.exists():
        return {}
    return {name: PassedRun(**entry) for name, entry in json.loads(file.read_text()).items()}


def save(root: Path, name: str, run: PassedRun) -> None:
    """Write a passed run into the record."""
    known = {**load(root), name: run}
    text = json.dumps({name: asdict(known[name]) for name in sorted(known)}, indent=2)
    (root / RECORD).write_text(text + "\n")


def sort_by_last_pass(suites: list[Suite], record: dict[str, PassedRun]) -> list[Suite]:
    """Return the suites by the date of their last pass, oldest first. Suites that never passed are at the beginning."""
    return sorted(suites, key=lambda suite: record[suite.name].date if suite.name in record else "")
