# SPDX-License-Identifier: GPL-3.0-or-later
"""The printed forms: tables, blocks, result lines, JSON. Pure.

Cells are separated by `` | ``, a dashed rule stands after the header and another at the end, and a row
that goes on has blank leading cells; so people read them, and so do programs that go by the header.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Cell = str | int | Sequence[str]


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]], ruled: bool = True) -> str:
    """A table; a cell that is a list takes one line for each of its elements.

    ``ruled`` tables have a rule before the header too. Graphcore prints some so and some not, and
    scripts count lines.
    """
    text = _tabulated(rows, header)
    return text if ruled else text.partition("\n")[2]


def block(pairs: Iterable[Sequence[Cell]]) -> str:
    """Lines of a name and its value."""
    return _tabulated(pairs, ())


def subject(verb: str, noun: str, id: str | None) -> str:
    """What a result line speaks of; without an id the noun stands in its place."""
    return f"{verb} {noun} ({id})" if id else f"{verb} ({noun})"


def success(subject: str) -> str:
    """The result line of what was done."""
    return f"{subject}: success."


def failure(subject: str, reason: str) -> str:
    """The result line of what was not."""
    return f"{subject}: failed: {' '.join(printable(reason).split()).removesuffix('.')}."


def as_json(value: Any) -> str:
    """JSON as every command prints it."""
    return json.dumps(value, indent=2)


def printable(text: str) -> str:
    """Text from elsewhere without what would steer a terminal."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def words(items: Iterable[str]) -> str:
    """Several names in one cell."""
    return " ".join(items)


def yes_no(value: object) -> str:
    """A flag in a cell."""
    return "yes" if value else "no"


def _tabulated(rows: Iterable[Sequence[Cell]], header: Sequence[str]) -> str:
    from tabulate import DataRow, TableFormat, tabulate

    plain = DataRow("", "|", "")
    lines = [line for cells in rows for line in _spread(cells)]
    # The library pads headers more than cells, and draws no rules around nothing: so a header is a row to it.
    text = tabulate(
        [header, *lines] if header else lines,
        tablefmt=TableFormat(None, None, None, None, plain, plain, 1, None),
        disable_numparse=True,
    )
    rule = "-" * (max(map(len, text.splitlines())) + 1)
    printed = [line.rstrip() for line in text.splitlines()]
    if header:
        printed.insert(1, rule)
    return "\n".join((rule, *printed, rule))


def _spread(cells: Sequence[Cell]) -> list[list[str]]:
    """A row as lines."""
    columns = [
        [printable(line) for line in (cell or [""])]
        if isinstance(cell, list | tuple)
        else printable(str(cell)).split("\n")
        for cell in cells
    ]
    height = max(len(column) for column in columns)
    return [[column[n] if n < len(column) else "" for column in columns] for n in range(height)]
