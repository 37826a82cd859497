# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of a rehearsal as lines of text: its phases with their durations, and signs of life of long ones."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass
class _Phase:
    title: str
    begun: float
    part: str = ""

    @property
    def text(self) -> str:
        return f"{self.title}: {self.part}" if self.part else self.title


class Progress:
    """Reporter of the phases.

    ``write`` prints a line. With ``quiet_seconds``, a line with the phase and its duration follows each such period
    without any other line.
    """

    def __init__(self, write: Callable[[str], None], quiet_seconds: float | None = None) -> None:
        self._write = write
        self._quiet_seconds = quiet_seconds
        self._phase: _Phase | None = None
        self._last = time.monotonic()  # time of the last line
        self._ended = threading.Event()

    @property
    def phase_text(self) -> str:
        """Title of the current phase, or of the last one, with its part. Empty before the first."""
        return self._phase.text if self._phase else ""

    def line(self, text: str) -> None:
        """Print a line."""
        self._last = time.monotonic()
        self._write(text)

    @contextlib.contextmanager
    def phase(self, title: str) -> Iterator[None]:
        """Report begin and end of a phase. Phases can be nested."""
        outer = self._phase
        current = self._phase = _Phase(title, time.monotonic())
        self.line(f"{title} …")
        yield
        self.line(f"{_seconds(current.begun)}  {title}: ended")
        self._phase = outer or current

    def part(self, name: str) -> None:
        """Record the part of the phase that begins now, such as a play, for signs of life and for an interrupt."""
        if self._phase:
            self._phase.part = name

    @contextlib.contextmanager
    def signs_of_life(self) -> Iterator[None]:
        """Report the current phase whenever no other line has been printed for a while."""
        if self._quiet_seconds is None:
            yield
            return
        thread = threading.Thread(target=self._report, args=(self._quiet_seconds,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _report(self, quiet: float) -> None:
        while not self._ended.wait(max(0.0, self._last + quiet - time.monotonic())):
            phase = self._phase
            if phase and time.monotonic() >= self._last + quiet:
                self.line(f"{_seconds(phase.begun)}  {phase.text} …")
            elif not phase:
                self._last = time.monotonic()


def _seconds(begun: float) -> str:
    return f"{time.monotonic() - begun:5.0f} s"
