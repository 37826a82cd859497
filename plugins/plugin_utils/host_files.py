# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of a host are as they are wanted, by what host_files_info tells of them. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass


@dataclass(frozen=True)
class Wanted:
    """A file, or a folder, which has no ``checksum``: whose it is, by name or number, and its mode in octal digits."""

    path: str
    owner: str
    group: str
    mode: str
    checksum: str | None = None  # SHA-1 of the content, since that is what Ansible compares files by

    def is_there(self, found: t.Mapping[str, t.Any] | None) -> bool:
        """Whether nothing is left to do, given what stands at the path; when in doubt, something is."""
        if not found or found["kind"] != ("directory" if self.checksum is None else "file"):
            return False
        same_mode = re.fullmatch("[0-7]+", self.mode) is not None and int(self.mode, 8) == int(found["mode"], 8)
        same_owner = self.owner in (found["owner"], str(found["uid"]))
        same_group = self.group in (found["group"], str(found["gid"]))
        return same_mode and same_owner and same_group and self.checksum == found.get("checksum")
