# SPDX-License-Identifier: GPL-3.0-or-later
"""A command with a terminal, as a person uses it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """The terminal of a running command."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self.text = ""  # printed until now, without control characters

    def expect(self, pattern: str, seconds: float) -> str:
        """Return the text up to a match of a pattern, and remove it from ``text``."""
        deadline = time.monotonic() + seconds
        while not (match := re.search(pattern, self.text)):
            left = deadline - time.monotonic()
            assert left > 0 and self._read(left), f"no match of {pattern}: {self.text}"
        found, self.text = self.text[: match.end()], self.text[match.end() :]
        return found

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._descriptor, f"{line}\n".encode())

    def status(self, seconds: float) -> int:
        """Return the exit status of the command after its end."""
        return self._process.wait(seconds)

    def _read(self, seconds: float) -> bool:
        """Read what the command prints next. Return whether it printed anything."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        try:
            data = os.read(self._descriptor, 65536) if ready else b""
        except OSError:  # the command has closed the terminal
            data = b""
        self.text += _ESCAPES.sub("", data.decode(errors="replace")).replace("\r", "")
        return bool(data)


@contextlib.contextmanager
def terminal(command: Sequence[str | Path]) -> Iterator[Terminal]:
    """Run a command with a terminal. It is ended with the context."""
    own, other = pty.openpty()
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, start_new_session=True)
    os.close(other)
    try:
        yield Terminal(process, own)
    finally:
        process.kill()
        process.wait()
        os.close(own)
