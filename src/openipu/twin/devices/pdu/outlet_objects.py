# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of the outlets of a switched PDU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Column
from openipu.twin.devices.pdu.models import Outlet
from openipu.twin.devices.pdu.pdu import Draft, Pdu
from openipu.twin.devices.pdu.shared_objects import shared_variables
from openipu.twin.devices.snmp.errors import SnmpError, Status
from openipu.twin.devices.snmp.objects import Variable, fixed

_FIELDS = {
    "Name": "name",
    "PowerOnTime": "on_delay",
    "PowerOffTime": "off_delay",
    "RebootDuration": "reboot_duration",
    "ExternalLink": "link",
}


def switched(pdu: Pdu) -> Iterator[Variable]:
    """Yield the objects that only switched PDUs have."""
    control = mib.DEVICE_CONTROL
    yield from shared_variables(pdu, control)
    yield Variable(control["Name"], 1, lambda: pdu.settings.name)
    yield device_command(pdu, control["Command"], 1)
    for outlet in pdu.model.outlets:
        yield from _outlet(pdu, outlet)


def _outlet(pdu: Pdu, outlet: Outlet) -> Iterator[Variable]:
    row = outlet.number
    config, properties, status, control = (
        mib.OUTLET_CONFIG,
        mib.OUTLET_PROPERTIES,
        mib.OUTLET_STATUS,
        mib.OUTLET_CONTROL,
    )

    for table in (config, properties, status, control):
        yield from shared_variables(pdu, table, row)
        if not table["Name"].writable:
            yield Variable(table["Name"], row, lambda: pdu.settings.outlets[row - 1].name)
    for text, name in _FIELDS.items():
        yield outlet_setting(pdu, config[text], row, name)
    wiring = properties["PhaseLayout"].names[f"seqPhase{outlet.phase}ToNeutral"]
    yield fixed(properties["PhaseLayout"], wiring, row)
    yield fixed(properties["Bank"], outlet.bank, row)
    states, pending = status["State"].names, status["CommandPending"].names
    yield Variable(status["State"], row, lambda: states["on" if pdu.outlets.is_on(row) else "off"])
    yield Variable(
        status["CommandPending"],
        row,
        lambda: pending["commandPending" if pdu.outlets.pending(row) else "noCommandPending"],
    )
    yield Variable(status["ExternalLink"], row, lambda: pdu.settings.outlets[row - 1].link)
    yield outlet_command(pdu, control["Command"], outlet)


def outlet_setting(pdu: Pdu, column: Column, outlet: int, name: str) -> Variable:
    """Return the object of a setting of an outlet."""

    def write(draft: Draft, value: Any) -> None:
        setattr(draft.settings.outlets[outlet - 1], name, value)

    return Variable(column, outlet, lambda: getattr(pdu.settings.outlets[outlet - 1], name), write)


def outlet_command(pdu: Pdu, column: Column, outlet: Outlet) -> Variable:
    """Return the object that runs commands of an outlet; it reads as the command that leads to its state."""

    def write(draft: Draft, value: Any) -> None:
        command = column.text(value)
        if command == "outletUnknown":
            raise SnmpError(Status.WRONG_VALUE)
        if command == "immediateOn" and not pdu.outlets.is_on(outlet.number) and not pdu.outlets.may_turn_on(outlet):
            raise SnmpError(Status.INCONSISTENT_VALUE)
        draft.actions.append(lambda: pdu.outlets.command(outlet.number, command))

    on, off = column.names["immediateOn"], column.names["immediateOff"]
    return Variable(column, outlet.number, lambda: on if pdu.outlets.is_on(outlet.number) else off, write)


def device_command(pdu: Pdu, column: Column, row: int = 0) -> Variable:
    """Return the object that runs commands of all outlets; it reads as noCommandAll."""

    def write(draft: Draft, value: Any) -> None:
        command = column.text(value)
        draft.actions.append(lambda: pdu.outlets.command_all(command))

    return Variable(column, row, lambda: column.names["noCommandAll"], write)
