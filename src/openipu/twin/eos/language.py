# SPDX-License-Identifier: GPL-3.0-or-later
"""What statements of a configuration are declared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """One setting.

    Args:
        forms: syntaxes that set it.
        default: its line when it is as it is by itself; never printed.
        off: the line that EOS keeps for `no`, for what is on by itself.
        shown: the line that EOS prints although it is the default.
        full: the line of `show running-config all` where nothing is set.
        rule: name of what this setting does besides (see `rules`).
        slot: the setting that it is a form of, where the words do not tell.
        group: lines of one group stand together, without `!` between.
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
    """A block: its head, and what may stand in it; `fleeting` is not printed when nothing does."""

    forms: tuple[str, ...]
    body: tuple[Statement | Mode, ...]
    rule: str = ""
    fleeting: bool = False


def statement(*forms: str, **more: str) -> Statement:
    """A setting with these syntaxes."""
    return Statement(forms, **more)


def grouped(group: str, *statements: Statement) -> Iterator[Statement]:
    """The same settings, in one group."""
    for one in statements:
        yield Statement(one.forms, one.default, one.off, one.shown, one.full, one.rule, one.slot, group)
