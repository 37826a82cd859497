# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of desired files with the result of host_files_info, and marks of files that are being written. No I/O."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible.utils.hashing import checksum_s

# Of the user who writes the files. A shell and host_files_info expand the home folder.
_MARKS = "~/.local/state/openipu/host_files"


@dataclass(frozen=True)
class DesiredFile:
    """A file or folder with its owner and group, by name or number, and its mode in octal digits.

    A folder has no ``checksum``.
    """

    path: str
    owner: str
    group: str
    mode: str
    checksum: str | None = None  # SHA-1 of the content, which Ansible compares

    def matches(self, found: t.Mapping[str, t.Any] | None) -> bool:
        """Return whether the file at the path needs no change, given its host_files_info entry or None.

        A mode that is not octal never matches.
        """
        if not found or found["kind"] != ("directory" if self.checksum is None else "file"):
            return False
        same_mode = re.fullmatch("[0-7]+", self.mode) is not None and int(self.mode, 8) == int(found["mode"], 8)
        same_owner = self.owner in (found["owner"], str(found["uid"]))
        same_group = self.group in (found["group"], str(found["gid"]))
        return same_mode and same_owner and same_group and self.checksum == found.get("checksum")


def mark(path: str) -> str:
    """Return the path of the mark of a file, which exists while a task writes the file, and after its failure."""
    return f"{_MARKS}/{checksum_s(path)}"


def create_marks(paths: t.Iterable[str]) -> str:
    """Return the shell command that creates the marks of files."""
    return f"umask 77 && mkdir -p {_MARKS} && touch {_marks(paths)}"


def remove_marks(paths: t.Iterable[str]) -> str:
    """Return the shell command that removes the marks of files."""
    return f"rm -f {_marks(paths)}"


def _marks(paths: t.Iterable[str]) -> str:
    return " ".join(map(mark, paths))
