# SPDX-License-Identifier: GPL-3.0-or-later
"""The SNMP objects of a PDU, in their order, and what one is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.mib import Column, Oid

from openipu.twin.pdu.pdu import Draft, Pdu

Value = int | str | tuple[int, ...]
Write = Callable[[Draft, Any], None]
Check = Callable[[Draft], None]


@dataclass(frozen=True, slots=True)
class Variable:
    """One object: ``write`` puts a value into a draft, and ``check`` looks whether the whole draft then makes sense.

    Both raise ``Refusal``. Without ``write`` it cannot be written on this model.
    """

    column: Column
    row: int
    read: Callable[[], Value]
    write: Write | None = None
    check: Check | None = None

    @property
    def oid(self) -> Oid:
        """Its name."""
        return self.column.at(self.row)


class Objects:
    """All objects of a PDU, in their order."""

    def __init__(self, variables: Iterable[Variable]) -> None:
        """See the class."""
        self._variables = {variable.oid: variable for variable in variables}
        self._oids = sorted(self._variables)
        self._columns = {variable.column.oid: variable.column for variable in self._variables.values()}
        self._lengths = {len(oid) for oid in self._columns}

    def at(self, oid: Oid) -> Variable | None:
        """The object of this name."""
        return self._variables.get(oid)

    def after(self, oid: Oid) -> Variable | None:
        """The first object after this name."""
        place = bisect_right(self._oids, oid)
        return self._variables[self._oids[place]] if place < len(self._oids) else None

    def column(self, oid: Oid) -> Column | None:
        """The column that this PDU has and this is the name of a row of, be the row there or not."""
        for length in self._lengths:
            if length < len(oid) and oid[:length] in self._columns:
                return self._columns[oid[:length]]
        return None


def fixed(column: Column, value: Value, row: int = 0) -> Variable:
    """What is always the same."""
    return Variable(column, row, lambda: value)


def common(pdu: Pdu, table: mib.Table, row: int = 1) -> Iterator[Variable]:
    """The columns that every table has."""
    yield fixed(table["Index"], row, row)
    if not table["Module"].writable:
        yield Variable(table["Module"], row, lambda: pdu.settings.module)
    if "Number" in table:
        yield fixed(table["Number"], row, row)
