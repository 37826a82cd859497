# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read and written of the outlets of a switched PDU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.mib import Column

from openipu.twin.pdu.errors import Refusal, Status
from openipu.twin.pdu.models import Outlet
from openipu.twin.pdu.objects import Variable, Write, common, fixed
from openipu.twin.pdu.pdu import Draft, Pdu

_FIELDS = {
    "Name": "name",
    "PowerOnTime": "on_delay",
    "PowerOffTime": "off_delay",
    "RebootDuration": "reboot_duration",
    "ExternalLink": "link",
}


def switched(pdu: Pdu) -> Iterator[Variable]:
    """What a metered PDU does not have."""
    control = mib.DEVICE_CONTROL
    yield from common(pdu, control)
    yield Variable(control["Name"], 1, lambda: pdu.settings.name)
    none = control["Command"].names["noCommandAll"]
    yield Variable(control["Command"], 1, lambda: none, _commands_all(pdu, control["Command"]))
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
        yield from common(pdu, table, row)
        if not table["Name"].writable:
            yield Variable(table["Name"], row, lambda: pdu.settings.outlets[row - 1].name)
    for text, name in _FIELDS.items():
        yield field(config[text], name)
    wiring = properties["PhaseLayout"].names[f"seqPhase{outlet.phase}ToNeutral"]
    yield fixed(properties["PhaseLayout"], wiring, row)
    yield fixed(properties["Bank"], outlet.bank, row)
    states, pending, commands = status["State"].names, status["CommandPending"].names, control["Command"].names
    yield Variable(status["State"], row, lambda: states["on" if pdu.is_on(row) else "off"])
    yield Variable(
        status["CommandPending"],
        row,
        lambda: pending["commandPending" if pdu.switching.pending(row) else "noCommandPending"],
    )
    yield Variable(status["ExternalLink"], row, lambda: pdu.settings.outlets[row - 1].link)
    yield Variable(
        control["Command"],
        row,
        lambda: commands["immediateOn" if pdu.is_on(row) else "immediateOff"],
        _commands(pdu, control["Command"], outlet),
    )


def _commands(pdu: Pdu, column: Column, outlet: Outlet) -> Write:
    def write(draft: Draft, value: Any) -> None:
        command = column.text(value)
        if command == "outletUnknown":
            raise Refusal(Status.WRONG_VALUE)
        if command == "immediateOn" and not pdu.is_on(outlet.number) and not pdu.may_turn_on(outlet):
            raise Refusal(Status.INCONSISTENT_VALUE)
        draft.todo.append(lambda: pdu.command(outlet.number, command))

    return write


def _commands_all(pdu: Pdu, column: Column) -> Write:
    def write(draft: Draft, value: Any) -> None:
        command = column.text(value)
        draft.todo.append(lambda: pdu.command_all(command))

    return write
