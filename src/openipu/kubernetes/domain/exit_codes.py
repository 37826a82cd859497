# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of exit codes, written as numbers and ranges: ``1-127,130``."""

from __future__ import annotations

MAX_EXIT_CODE = 255


def parse(text: str) -> frozenset[int]:
    """Return the exit codes. Raises ValueError with a clause."""
    codes: set[int] = set()
    for part in text.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part.strip()!r} is neither a number nor a range")
        low, high = int(first), int(last or first)
        if high > MAX_EXIT_CODE:
            raise ValueError(f"{high} is above {MAX_EXIT_CODE}")
        if low > high:
            raise ValueError(f"the range {part.strip()!r} is empty")
        codes.update(range(low, high + 1))
    if 0 in codes:
        raise ValueError("0 means success")
    return frozenset(codes)
