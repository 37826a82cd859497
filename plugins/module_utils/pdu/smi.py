# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP tables and their columns, in the terms of SMIv2 (RFC 2578)."""

from __future__ import annotations

import enum
import typing as t
from dataclasses import dataclass, field, replace

Oid = tuple[int, ...]


class Syntax(enum.Enum):
    """SMI types of the columns."""

    INTEGER = "Integer32"
    GAUGE = "Gauge32"
    COUNTER = "Counter32"
    COUNTER64 = "Counter64"
    TEXT = "OctetString"
    OBJECT_ID = "ObjectIdentifier"
    TIME_TICKS = "TimeTicks"
    ADDRESS = "IpAddress"


@dataclass(frozen=True)
class Column:
    """One column of a table, or a scalar, whose only row is 0.

    ``per_unit`` counts are one ``unit``: 153 in a column with unit A and 10 per unit is 15.3 A. Models without a
    feature return ``-1``. ``low`` and ``high`` are the writable range, if the MIB defines one. The range of
    thresholds depends on the ratings of the model, which the MIB does not define.
    """

    name: str
    oid: Oid
    syntax: Syntax
    unit: str = ""
    per_unit: int = 1
    writable: bool = False
    names: t.Mapping[str, int] = field(default_factory=dict)
    low: int | None = None
    high: int | None = None

    def at(self, row: int = 0) -> Oid:
        """Return the object identifier of the value in this row."""
        return (*self.oid, row)

    def text(self, number: int) -> str:
        """Return the name of a value; the number itself if the MIB has no name for it."""
        return next((name for name, value in self.names.items() if value == number), str(number))


class Table(t.Mapping[str, Column]):
    """Columns of a table, by their names without the name of the table: ``DEVICE_CONFIG["Name"].at(1)``."""

    def __init__(self, name: str, entry: Oid, *columns: Column) -> None:
        """``columns`` have names and numbers relative to the table."""
        self.name = name
        self.entry = entry
        self._columns = {c.name: replace(c, name=name + c.name, oid=entry + c.oid) for c in columns}

    def __getitem__(self, name: str) -> Column:
        """Return a column. Raises KeyError."""
        return self._columns[name]

    def __iter__(self) -> t.Iterator[str]:
        """Iterate over the names, in the order of the columns."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._columns)


def integer(name: str, number: int, unit: str = "", per_unit: int = 1) -> Column:
    """Return a column of integers. ``number``: its last identifier."""
    return Column(name, (number,), Syntax.INTEGER, unit, per_unit)


def text(name: str, number: int) -> Column:
    """Return a column of texts."""
    return Column(name, (number,), Syntax.TEXT)


def choice(name: str, number: int, *names: str) -> Column:
    """Return a column with an enumeration, whose values count from 1."""
    return Column(name, (number,), Syntax.INTEGER, names={text: value for value, text in enumerate(names, 1)})


def writable(column: Column, low: int | None = None, high: int | None = None) -> Column:
    """Return a column that can be written, with its range."""
    return replace(column, writable=True, low=low, high=high)
