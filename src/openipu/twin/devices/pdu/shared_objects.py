# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects that several tables of a PDU have."""

from __future__ import annotations

from collections.abc import Iterator

from openipu.shared.pdu.smi import Table
from openipu.twin.devices.pdu.pdu import Pdu
from openipu.twin.devices.snmp.objects import Variable, fixed


def shared_variables(pdu: Pdu, table: Table, row: int = 1) -> Iterator[Variable]:
    """Yield the objects of the columns that all tables share."""
    yield fixed(table["Index"], row, row)
    if not table["Module"].writable:
        yield Variable(table["Module"], row, lambda: pdu.settings.module)
    if "Number" in table:
        yield fixed(table["Number"], row, row)
