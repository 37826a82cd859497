# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of the outlets of a switched PDU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Column
from openipu.twin.devices.pdu.errors import SnmpError, Status
from openipu.twin.devices.pdu.models import Outlet
from openipu.twin.devices.pdu.objects import Variable, Write, fixed, shared_variables
from openipu.twin.devices.pdu.pdu import Draft, Pdu

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
    none = control["Command"].names["noCommandAll"]
    yield Variable(control["Command"], 1, lambda: none, _write_device_command(pdu, control["Command"]))
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

    def field(column: Column, name: str) -> Variable:
        def write(draft: Draft, value: Any) -> None:
            setattr(draft.settings.outlets[row - 1], name, value)

        return Variable(column, row, lambda: getattr(pdu.settings.outlets[row - 1], name), write)

    for table in (config, properties, status, control):
        yield from shared_variables(pdu, table, row)
        if not table["Name"].writable:
            yield Variable(table["Name"], row, lambda: pdu.settings.outlets[row - 1].name)
    for text, name in _FIELDS.items():
        yield field(config[text], name)
    wiring = properties["PhaseLayout"].names[f"seqPhase{outlet.phase}ToNeutral"]
    yield fixed(properties["PhaseLayout"], wiring, row)
    yield fixed(properties["Bank"], outlet.bank, row)
    states, pending, commands = status["State"].names, status["CommandPending"].names, control["Command"].names
    yield Variable(status["State"], row, lambda: states["on" if pdu.outlets.is_on(row) else "off"])
    yield Variable(
        status["CommandPending"],
        row,
        lambda: pending["commandPending" if pdu.outlets.pending(row) else "noCommandPending"],
    )
    yield Variable(status["ExternalLink"], row, lambda: pdu.settings.outlets[row - 1].link)
    yield Variable(
        control["Command"],
        row,
        lambda: commands["immediateOn" if pdu.outlets.is_on(row) else "immediateOff"],
        _write_outlet_command(pdu, control["Command"], outlet),
    )


def _write_outlet_command(pdu: Pdu, column: Column, outlet: Outlet) -> Write:
    def write(draft: Draft, value: Any) -> None:
        command = column.text(value)
        if command == "outletUnknown":
            raise SnmpError(Status.WRONG_VALUE)
        if command == "immediateOn" and not pdu.outlets.is_on(outlet.number) and not pdu.outlets.may_turn_on(outlet):
            raise SnmpError(Status.INCONSISTENT_VALUE)
        draft.actions.append(lambda: pdu.outlets.command(outlet.number, command))

    return write


def _write_device_command(pdu: Pdu, column: Column) -> Write:
    def write(draft: Draft, value: Any) -> None:
        command = column.text(value)
        draft.actions.append(lambda: pdu.outlets.command_all(command))

    return write
