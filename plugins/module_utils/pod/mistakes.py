# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in pod.yml and machines.csv: errors with file and line, collected so that one run shows all of them."""

from __future__ import annotations

import contextlib
import typing as t

_MAX_SHOWN = 50  # maximum number of mistakes in one message


class PodError(Exception):
    """Raised for a mistake in pod.yml or machines.csv.

    ``line`` counts from 1 and is None for the whole file. ``column`` counts from 1 and is None for a row of a table.
    """

    error_code = "OPU300"

    def __init__(self, file: str, line: int | None, message: str) -> None:
        self.place = file if line is None else "%s, line %d" % (file, line)
        super().__init__("%s: %s" % (self.place, message))
        self.file = file
        self.line = line
        self.message = message
        self.column: int | None = getattr(line, "column", None)
        self.mistakes: tuple[PodError, ...] = (self,)


class SeveralPodErrors(PodError):
    """Raised for several mistakes: those in ``mistakes``, by file and line."""

    error_code = PodError.error_code

    def __init__(self, mistakes: t.Iterable[PodError]) -> None:
        """``mistakes`` are at least two."""
        ordered = sorted(mistakes, key=lambda each: (each.file, each.line or 0))
        super().__init__(ordered[0].file, ordered[0].line, ordered[0].message)
        self.mistakes = tuple(ordered)
        lines = ["%d mistakes:" % len(ordered), *map(str, ordered[:_MAX_SHOWN])]
        if len(ordered) > _MAX_SHOWN:
            lines.append("… and %d more" % (len(ordered) - _MAX_SHOWN))
        self.args = ("\n".join(lines),)


class ConsequenceError(PodError):
    """Raised for an object that refers to one with a mistake. It is not reported: the mistake is."""

    error_code = PodError.error_code


class Mistakes:
    """Collector of mistakes."""

    def __init__(self) -> None:
        self._found: list[PodError] = []

    @contextlib.contextmanager
    def collect(self) -> t.Iterator[None]:
        """Record the mistakes of a block of code instead of raising them. The rest of the block is skipped."""
        try:
            yield
        except ConsequenceError:
            pass
        except PodError as error:
            self.add(error)

    def add(self, error: PodError) -> None:
        """Record a mistake, or several."""
        self._found += error.mistakes

    def check(self) -> None:
        """Raise PodError with all recorded mistakes, if any."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise SeveralPodErrors(self._found)
