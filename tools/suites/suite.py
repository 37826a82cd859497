# SPDX-License-Identifier: GPL-3.0-or-later
"""A test suite and its inputs. No I/O.

Inputs are patterns of tracked files as ``fnmatch`` reads them, where ``*`` also matches ``/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Files that every suite depends on: the environment, the Makefile, what all tests share.
COMMON = (
    "Makefile",
    "README.md",  # part of the wheel
    "ansible.cfg",
    "galaxy.yml",
    "meta/*",
    "pyproject.toml",
    "requirements/bootstrap.txt",
    "requirements/dev.txt",
    "tests/__init__.py",
    "tests/conftest.py",
    "tests/event_loop.py",
    "tests/ports.py",
    "tests/waiting.py",
    "tools/bootstrap.sh",
    "tools/commandline.py",
    "tools/suites/*",
)


@dataclass(frozen=True, slots=True)
class Suite:
    """One target of the Makefile that runs tests.

    ``name`` is the target. ``always``: ``.ci/run`` calls it each time itself. ``packages`` are
    Debian packages that it needs. ``seconds`` is the expected duration until a record exists. ``skips`` are
    regular expressions of reasons for which tests may be skipped; any other skip means that the suite has
    not passed.
    ``ignored`` are patterns of files that it may read although its result does not depend on them.
    ``excluded`` are such patterns for files that ``inputs`` match.
    ``sessions``: it runs pytest, so a run without a passed test proves nothing.
    ``emulated``: it emulates a machine, which takes half an hour, so ``.ci/run`` does not run it.
    ``before`` is a target that stops services of earlier runs, which may belong to another commit.
    """

    name: str
    summary: str
    inputs: tuple[str, ...]
    seconds: int
    always: bool = False
    root: bool = False
    packages: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    sessions: bool = True
    emulated: bool = False
    variables: tuple[str, ...] = ()  # assignments on the command line of make
    before: str = ""

    @property
    def filter(self) -> str:
        """The filter of pytest that belongs to the suite itself."""
        return next((each.partition("=")[2] for each in self.variables if each.startswith("ROLE=")), "")

    @property
    def command(self) -> list[str]:
        """The command that runs the suite."""
        return ["make", "--no-print-directory", self.name, *self.variables]

    @property
    def commands(self) -> list[list[str]]:
        """The commands of a run, in order: that of ``before``, if any, and that of the suite."""
        return [*([["make", "--no-print-directory", self.before]] if self.before else []), self.command]

    def reads(self, path: str) -> bool:
        """Return whether a tracked file is a declared input."""
        return _matches(path, (*COMMON, *self.inputs)) and not _matches(path, self.excluded)


def undeclared(suite: Suite, paths: Sequence[str]) -> list[str]:
    """Return the paths that a suite may not read."""
    permitted = (*suite.ignored, *suite.excluded)
    return [path for path in paths if not suite.reads(path) and not _matches(path, permitted)]


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
