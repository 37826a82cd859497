# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of outlets in the legacy rPDU tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from openipu.shared.pdu.smi import Table
from openipu.twin.devices.pdu import legacy_mib as mib
from openipu.twin.devices.pdu.load import Thresholds
from openipu.twin.devices.pdu.models import Outlet
from openipu.twin.devices.pdu.outlet_objects import device_command, outlet_command, outlet_setting
from openipu.twin.devices.pdu.pdu import Pdu
from openipu.twin.devices.pdu.setting_objects import restriction, setting
from openipu.twin.devices.pdu.settings import Settings
from openipu.twin.devices.snmp.objects import Variable, fixed

_SETTINGS = (
    ("OutletName", "name"),
    ("PowerOnTime", "on_delay"),
    ("PowerOffTime", "off_delay"),
    ("RebootDuration", "reboot_duration"),
)


def outlet_counts(pdu: Pdu) -> Iterator[Variable]:
    """Yield the numbers of outlets."""
    outlets = len(pdu.model.outlets)
    for name, count in (
        ("NumCntrlOutlets", outlets if pdu.model.switched else 0),
        ("NumTotalOutlets", outlets),
        ("MonitoredOutlets", 0),
    ):
        yield fixed(mib.OUTLET_DEVICE[name], count)
    yield fixed(mib.OUTLET_MONITORED_SIZE, 0)


def switched(pdu: Pdu) -> Iterator[Variable]:
    """Yield the objects that only switched PDUs have."""
    yield device_command(pdu, mib.OUTLET_DEVICE["Command"])
    yield setting(pdu, mib.OUTLET_DEVICE["ColdstartDelay"], "coldstart_delay")
    for outlet in pdu.model.outlets:
        yield from _outlet(pdu, outlet)
    for number in range(1, pdu.model.phases + 1):
        yield from _restriction(pdu, mib.OUTLET_PHASE, number, attrgetter("phases"))
    for number in range(1, len(pdu.model.bank_phases) + 1):
        yield from _restriction(pdu, mib.OUTLET_BANK, number, attrgetter("banks"))


def _restriction(
    pdu: Pdu, table: Table, number: int, rows: Callable[[Settings], list[Thresholds]]
) -> Iterator[Variable]:
    yield fixed(table["Index"], number, number)
    yield restriction(pdu, table["OverloadRestriction"], number, lambda settings: rows(settings)[number - 1])


def _outlet(pdu: Pdu, outlet: Outlet) -> Iterator[Variable]:
    row = outlet.number
    config, status, control = mib.OUTLET_CONFIG, mib.OUTLET_STATUS, mib.OUTLET_CONTROL
    for table in (config, status, control):
        yield fixed(table["Index"], row, row)
        yield fixed(table["OutletPhase"], table["OutletPhase"].names[f"phase{outlet.phase}"], row)
        yield fixed(table["OutletBank"], outlet.bank, row)
        if not table["OutletName"].writable:
            yield Variable(table["OutletName"], row, lambda: pdu.settings.outlets[row - 1].name)
    for text, name in _SETTINGS:
        yield outlet_setting(pdu, config[text], row, name)
    states, pending = status["OutletState"].names, status["CommandPending"].names
    yield Variable(
        status["OutletState"],
        row,
        lambda: states["outletStatusOn" if pdu.outlets.is_on(row) else "outletStatusOff"],
    )
    yield Variable(
        status["CommandPending"],
        row,
        lambda: pending["outletStatusCommandPending" if pdu.outlets.pending(row) else "outletStatusNoCommandPending"],
    )
    yield outlet_command(pdu, control["OutletCommand"], outlet)
