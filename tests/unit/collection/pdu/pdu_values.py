# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of PDU agents, as the client returns them."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib, tables
from ansible_collections.openipu.pod.plugins.module_utils.pdu.session import Oid, Value
from ansible_collections.openipu.pod.plugins.module_utils.pdu.smi import Column

WIRING = ("seqPhase1ToNeutral", "seqPhase2ToNeutral", "seqPhase3ToNeutral")
RECEIVERS = 6


def ap8886(**more: Any) -> dict[Oid, Value]:
    """Return a metered PDU: three phases of 32 A at 230 V, six banks of 16 A, two on each phase.

    ``phase_currents`` and ``bank_currents`` are in tenths of A, ``power`` in hundredths of kW.
    """
    phase_currents = more.pop("phase_currents", (100, 100, 100))
    bank_currents = more.pop("bank_currents", (50,) * 6)
    values: dict[Oid, Value] = {
        **_scalars(phases=3, banks=6, outlets=0),
        **_row(tables.IDENTITY, 1, ("AP8886", "ZA1", "v6.9.6", "05", 42, 0, 32, 22000)),
        **_row(tables.SETTINGS, 1, ("apc", "Unknown", "Unknown", 0, 176, 220)),
        **_row(tables.DEVICE_LOAD, 1, (more.pop("power", 690), 700, 12045, 2, 1)),
    }
    for row in (1, 2, 3):
        current = phase_currents[row - 1]
        values |= _row({"number": tables.PHASES.key, **tables.PHASES.columns}, row, (row, 0, 26, 32))
        values |= _row(
            {"number": tables.PHASE_LOADS.key, **tables.PHASE_LOADS.columns},
            row,
            (row, current, 230, current * 23 // 100, 2),
        )
    for row in range(1, 7):
        layout = mib.BANK_PROPERTIES["PhaseLayout"].names[WIRING[(row - 1) // 2]]
        values |= _row({"number": tables.BANKS.key, **tables.BANKS.columns}, row, (row, 0, 13, 16, 16))
        values |= _row(
            {"number": tables.BANK_LOADS.key, **tables.BANK_LOADS.columns},
            row,
            (row, bank_currents[row - 1], 2, 16, layout),
        )
    return values | _receivers() | more.pop("instead", {})


def switched(**more: Any) -> dict[Oid, Value]:
    """Return a switched PDU: one phase of 32 A, no banks, eight outlets, all on."""
    values: dict[Oid, Value] = {
        **_scalars(phases=1, banks=0, outlets=8),
        **_row(tables.IDENTITY, 1, ("AP8959", "ZA2", "v6.9.6", "05", 8, 8, 32, 74)),
        **_row(tables.SETTINGS, 1, ("apc", "Unknown", "Unknown", -1, -1, -1)),
        **_row(tables.DEVICE_LOAD, 1, (230, 240, 100, 2, 1)),
        **_row({"number": tables.PHASES.key, **tables.PHASES.columns}, 1, (1, 0, 26, 32)),
        **_row({"number": tables.PHASE_LOADS.key, **tables.PHASE_LOADS.columns}, 1, (1, 100, 230, 230, 2)),
    }
    for row in range(1, 9):
        columns = {"number": tables.OUTLETS.key, **tables.OUTLETS.columns}
        values |= _row(columns, row, (row, f"Outlet {row}", 0, -1, 5, 2, 0))
    return values | _receivers() | more.pop("instead", {})


def _scalars(**counts: int) -> dict[Oid, Value]:
    return {
        tables.SIZES["units"].at(): 1,
        tables.SIZES["trap_receivers"].at(): RECEIVERS,
        **{tables.SIZES[name].at(): count for name, count in counts.items()},
    }


def _receivers() -> dict[Oid, Value]:
    columns = {"number": tables.RECEIVERS.key, **tables.RECEIVERS.columns}
    values = _row(columns, 1, (1, IPv4Address("10.1.3.101"), "s3cret", 1))
    for row in range(2, RECEIVERS + 1):
        values |= _row(columns, row, (row, IPv4Address("0.0.0.0"), "", 2))
    return values


def _row(columns: dict[str, Column], row: int, cells: tuple[Value, ...]) -> dict[Oid, Value]:
    return {column.at(row): cell for column, cell in zip(columns.values(), cells, strict=True)}
