# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of settings, which the rPDU2 tables and the legacy tables share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from openipu.shared.pdu.smi import Column, Table
from openipu.twin.devices.pdu.load import LoadState, Thresholds
from openipu.twin.devices.pdu.pdu import Draft, Pdu
from openipu.twin.devices.pdu.settings import Settings
from openipu.twin.devices.snmp.errors import SnmpError, Status
from openipu.twin.devices.snmp.objects import Variable, fixed


def setting(pdu: Pdu, column: Column, name: str, row: int = 0, high: int | None = None) -> Variable:
    """Return the object of a setting. Its range is 1 to ``high``, or that of the MIB without ``high``."""

    def write(draft: Draft, value: Any) -> None:
        if high is not None and not 1 <= value <= high:
            raise SnmpError(Status.WRONG_VALUE)
        setattr(draft.settings, name, value)

    return Variable(column, row, lambda: getattr(pdu.settings, name), write)


def thresholds(
    pdu: Pdu, table: Table, kind: str, row: int, find: Callable[[Settings], Thresholds], rating: int
) -> Iterator[Variable]:
    """Yield the objects of three thresholds and of the restriction, if any; ``rating`` is the highest threshold."""

    def check(draft: Draft) -> None:
        desired = find(draft.settings)
        if not desired.low <= desired.near <= desired.over:
            raise SnmpError(Status.INCONSISTENT_VALUE)

    def threshold(column: Column, name: str) -> Variable:
        def write(draft: Draft, value: Any) -> None:
            if not 0 <= value <= rating:
                raise SnmpError(Status.WRONG_VALUE)
            setattr(find(draft.settings), name, value)

        return Variable(column, row, lambda: int(getattr(find(pdu.settings), name)), write, check)

    for text, name in (("LowLoad", "low"), ("NearOverload", "near"), ("Overload", "over")):
        yield threshold(table[text + kind], name)
    if "OverloadRestriction" in table:
        yield restriction(pdu, table["OverloadRestriction"], row, find)


_RESTRICTIONS = {
    "alwaysAllowTurnON": LoadState.LOW,
    "restrictOnNearOverload": LoadState.NEAR_OVERLOAD,
    "restrictOnOverload": LoadState.OVERLOAD,
}


def restriction(pdu: Pdu, column: Column, row: int, find: Callable[[Settings], Thresholds]) -> Variable:
    """Return the object that restricts turning on outlets; read-only on models without this setting."""
    if find(pdu.settings).restriction is None:
        return fixed(column, column.names["notSupported"], row)
    numbers = {state: column.names[text] for text, state in _RESTRICTIONS.items()}

    def write(draft: Draft, value: Any) -> None:
        state = _RESTRICTIONS.get(column.text(value))
        if state is None:
            raise SnmpError(Status.WRONG_VALUE)
        find(draft.settings).restriction = state

    return Variable(column, row, lambda: numbers[find(pdu.settings).restriction or LoadState.LOW], write)
