# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tags by which modules recognize the objects that they own. No I/O."""

from __future__ import annotations

import typing as t

# Followed by the owner. Modules remove only objects with this tag.
TAG = "openipu.pod="


def owner_of(raw: t.Mapping[str, t.Any]) -> str | None:
    """Return the POD that owns an object; None when no task of this collection created it."""
    return next((tag.removeprefix(TAG) for tag in raw.get("tags") or () if tag.startswith(TAG)), None)
