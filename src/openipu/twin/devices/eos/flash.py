# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration files on the flash of a switch, and its configuration checkpoints."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openipu.twin.devices.eos.config.grammar import CliError

MAX_CHECKPOINTS = 20  # the default of `service configuration checkpoint max saved`
_MAX_FILES = 32
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Checkpoint:
    """Saved configuration: its text, the time in seconds since the epoch, and the user who saved it."""

    text: str
    saved: float
    user: str


class Flash:
    """Files of a switch.

    Args:
        folder: folder in which the files survive a restart of the twin; None to keep them in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._files = {file.name: file.read_text("utf-8") for file in _files(folder)}
        self.checkpoints: dict[str, Checkpoint] = {}

    def write(self, url: str, text: str) -> None:
        """Write a file, for example `flash:rollback-0`.

        Raises:
            CliError: when the name is invalid, or the flash is full.
        """
        name = _name(url)
        if name not in self._files and len(self._files) >= _MAX_FILES:
            raise CliError(1000, f"Error copying to {url} (No space left on device)")
        self._files[name] = text
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            new = self._folder / f".{name}"
            new.write_text(text, "utf-8")
            new.replace(self._folder / name)

    def read(self, url: str) -> str:
        """Return the text of a file.

        Raises:
            CliError: when it does not exist.
        """
        name = _name(url)
        if name not in self._files:
            raise CliError(1000, f"Error opening {url} (No such file or directory)")
        return self._files[name]

    def save_checkpoint(self, name: str, text: str, user: str, now: float) -> str:
        """Save a configuration under a name, or under a name of EOS, and return the name. Drop the oldest."""
        if not name:
            day = time.strftime("%Y%m%d", time.gmtime(now))
            name = next(
                free for n in range(len(self.checkpoints) + 1) if (free := f"ckp-{day}-{n}") not in self.checkpoints
            )
        self.checkpoints.pop(name, None)
        self.checkpoints[name] = Checkpoint(text, now, user)
        while len(self.checkpoints) > MAX_CHECKPOINTS:
            del self.checkpoints[next(iter(self.checkpoints))]
        return name

    def checkpoint(self, name: str) -> str:
        """Return the text of a checkpoint.

        Raises:
            CliError: when it does not exist.
        """
        if name not in self.checkpoints:
            raise CliError(1000, f"Checkpoint {name} does not exist")
        return self.checkpoints[name].text


def _name(url: str) -> str:
    """Return the name of a file on the flash."""
    name = url.removeprefix("flash:").removeprefix("/")
    if not url.startswith("flash:") or not _FILE.fullmatch(name):
        raise CliError(1002, f"Invalid input (at token 2: '{url}')")
    return name


def _files(folder: Path | None) -> Iterator[Path]:
    if folder is not None and folder.is_dir():
        yield from (file for file in sorted(folder.iterdir()) if _FILE.fullmatch(file.name))
