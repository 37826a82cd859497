# SPDX-License-Identifier: GPL-3.0-or-later
"""Types that declare the statements and modes of the configuration language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """Declaration of one setting.

    Args:
        forms: syntaxes that set it.
        default: line of the default value; never printed.
        off: line that EOS stores for `no`, for a setting that is on by default.
        shown: default line that EOS prints nevertheless.
        full: line of `show running-config all` when the setting has its default.
        rule: name of the rule that computes the stored line (see `rules`).
        slot: key of the setting, where it differs from the key that the words give.
        group: group of the setting; EOS prints no `!` between lines of one group.
    """

    forms: tuple[str, ...]
    default: str = ""
    off: str = ""
    shown: str = ""
    full: str = ""
    rule: str = ""
    slot: str = ""
    group: str = ""


@dataclass(frozen=True)
class Mode:
    """Declaration of a block: head lines and allowed statements; `hide_empty` hides an empty block."""

    forms: tuple[str, ...]
    body: tuple[Statement | Mode, ...]
    rule: str = ""
    hide_empty: bool = False


def statement(*forms: str, **more: str) -> Statement:
    """Return the declaration of a setting with these syntaxes."""
    return Statement(forms, **more)


def grouped(group: str, *statements: Statement) -> Iterator[Statement]:
    """Yield copies of these settings in one group."""
    for one in statements:
        yield Statement(one.forms, one.default, one.off, one.shown, one.full, one.rule, one.slot, group)
