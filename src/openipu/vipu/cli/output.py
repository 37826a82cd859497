# SPDX-License-Identifier: GPL-3.0-or-later
"""Output forms: tables, blocks, result lines, JSON. No I/O.

Cells are separated by `` | ``. A dashed rule follows the header, and usually the last row. Leading cells are blank in
the continuation lines of a row. Programs can parse tables by their header.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Cell = str | int | Sequence[str]


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]], ruled: bool = True, closed: bool = True) -> str:
    """Return a table. A cell that is a list takes one line per element.

    ``ruled`` tables also have a rule before the header, and ``closed`` ones a rule after the last row. Graphcore
    prints all of these forms, and scripts count lines.
    """
    text = _tabulated(rows, header)
    text = text if ruled else text.partition("\n")[2]
    return text if closed else text.rpartition("\n")[0]


def block(pairs: Iterable[Sequence[Cell]]) -> str:
    """Return lines of names and values."""
    return _tabulated(pairs, ())


def subject(verb: str, noun: str, id: str | None) -> str:
    """Return the subject of a result line, with the noun in place of a missing id."""
    return f"{verb} {noun} ({id})" if id else f"{verb} ({noun})"


def success(subject: str) -> str:
    """Return the result line of a success."""
    return f"{subject}: success."


def failure(subject: str, reason: str) -> str:
    """Return the result line of a failure. It ends with a full stop, or with a question mark."""
    text = " ".join(printable(reason).split())
    return f"{subject}: failed: {text if text.endswith('?') else text.removesuffix('.') + '.'}"


def as_json(value: Any) -> str:
    """Return JSON in the form of all commands."""
    return json.dumps(value, indent=2)


def printable(text: str) -> str:
    """Return received text with terminal control characters escaped."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def words(items: Iterable[str]) -> str:
    """Return several names as one cell."""
    return " ".join(items)


def yes_no(value: object) -> str:
    """Return a flag as a cell."""
    return "yes" if value else "no"


def _tabulated(rows: Iterable[Sequence[Cell]], header: Sequence[str]) -> str:
    from tabulate import DataRow, TableFormat, tabulate

    row_format = DataRow("", "|", "")
    lines = [line for cells in rows for line in _spread(cells)]
    # The library pads headers more than cells and omits rules of empty tables, so pass the header as a row.
    text = tabulate(
        [header, *lines] if header else lines,
        tablefmt=TableFormat(None, None, None, None, row_format, row_format, 1, None),
        disable_numparse=True,
    )
    rule = "-" * (max(map(len, text.splitlines())) + 1)
    printed = [line.rstrip() for line in text.splitlines()]
    if header:
        printed.insert(1, rule)
    return "\n".join((rule, *printed, rule))


def _spread(cells: Sequence[Cell]) -> list[list[str]]:
    """Return the lines of a row."""
    columns = [
        [printable(line) for line in (cell or [""])]
        if isinstance(cell, list | tuple)
        else printable(str(cell)).split("\n")
        for cell in cells
    ]
    height = max(len(column) for column in columns)
    return [[column[n] if n < len(column) else "" for column in columns] for n in range(height)]
