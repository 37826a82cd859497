# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Natural order of names: 'Ethernet2' comes before 'Ethernet10'. No I/O."""

from __future__ import annotations

import re


def natural(name: str) -> list[str | int]:
    """Return the sort key of a name."""
    return [int(part) if position % 2 else part for position, part in enumerate(re.split(r"([0-9]+)", name))]
