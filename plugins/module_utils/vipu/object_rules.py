# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of ids and sizes that the controller, the POD model and the modules share. No I/O."""

from __future__ import annotations

import re

IPUS_PER_MACHINE = 4
ID_RULE = "1 to 63 letters, digits, '.', '_' or '-', and start with a letter, a digit or '_'"  # for messages

ID_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,62}"


def is_valid_id(text: str) -> bool:
    """Return whether the controller accepts an id. Ids with a meaning in file paths are invalid."""
    return re.fullmatch(ID_PATTERN, text) is not None


def is_power_of_two(number: int) -> bool:
    """Return whether a number is 1, 2, 4, 8, …"""
    return number > 0 and number & (number - 1) == 0
