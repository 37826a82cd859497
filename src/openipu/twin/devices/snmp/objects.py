# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of a device, in the order of their names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from openipu.shared.pdu.smi import Column, Oid, Syntax

Value = int | str | bytes | tuple[int, ...]
Write = Callable[[Any, Any], None]  # draft of the device, value
Check = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Variable:
    """One object. ``write`` sets a value in a draft; ``check`` validates the complete draft.

    Both raise ``SnmpError``. Without ``write`` the object is read-only on this model.
    """

    column: Column
    row: int
    read: Callable[[], Value]
    write: Write | None = None
    check: Check | None = None

    @property
    def oid(self) -> Oid:
        """Object identifier."""
        return self.column.at(self.row)


class Objects:
    """All objects of a device, in the order of their names. Without ``counter64``, those of this type are omitted."""

    def __init__(self, variables: Iterable[Variable], *, counter64: bool = True) -> None:
        self._variables = {
            variable.oid: variable
            for variable in variables
            if counter64 or variable.column.syntax is not Syntax.COUNTER64
        }
        self._oids = sorted(self._variables)
        self._columns = {variable.column.oid: variable.column for variable in self._variables.values()}
        self._lengths = {len(oid) for oid in self._columns}

    def at(self, oid: Oid) -> Variable | None:
        """Return the object of this name, or None."""
        return self._variables.get(oid)

    def after(self, oid: Oid) -> Variable | None:
        """Return the first object after this name, or None."""
        place = bisect_right(self._oids, oid)
        return self._variables[self._oids[place]] if place < len(self._oids) else None

    def column(self, oid: Oid) -> Column | None:
        """Return the column of a name, whether or not its row exists; None if the device does not have the column."""
        for length in self._lengths:
            if length < len(oid) and oid[:length] in self._columns:
                return self._columns[oid[:length]]
        return None


def fixed(column: Column, value: Value, row: int = 0) -> Variable:
    """Return an object with a constant value."""
    return Variable(column, row, lambda: value)
