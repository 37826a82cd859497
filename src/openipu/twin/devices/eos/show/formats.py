# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as EOS prints them."""

from __future__ import annotations


def mac(digits: str, offset: int = 0) -> str:
    """Return a MAC address with colons; `offset` is added to its number."""
    text = f"{int(digits, 16) + offset:012x}"
    return ":".join(text[n : n + 2] for n in range(0, 12, 2))


def dotted(address: str) -> str:
    """Return a MAC address in the form of EOS tables: `001c.7300.0001`."""
    digits = address.replace(":", "").replace(".", "").lower()
    return ".".join(digits[n : n + 4] for n in (0, 4, 8))


def ago(seconds: float) -> str:
    """Return a duration in the form of EOS: `1 day, 2:03:04`."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86400)
    clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days} day{'s' if days > 1 else ''}, {clock}" if days else clock
