# SPDX-License-Identifier: GPL-3.0-or-later
"""Traps to the configured receivers of a PDU: SNMPv1, as its table of receivers defines.

Numbers and variables follow PowerNet-MIB: from rPDULowLoad (272) for a device, and from rPDUBankPhaseLowLoad (222)
for a phase or bank.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyasn1.codec.ber import encoder  # type: ignore[import-untyped]  # it has no types
from pysnmp.proto.api import v1

from openipu.shared.pdu.mib import APC
from openipu.twin.devices.pdu.load import LoadState
from openipu.twin.devices.pdu.pdu import Alarm, Pdu
from openipu.twin.devices.pdu.settings import NO_ADDRESS

_RPDU = (*APC, 1, 1, 12)
_SERIAL, _NAME = (*_RPDU, 1, 6, 0), (*_RPDU, 1, 1, 0)
_PHASE_NUMBER, _BANK_NUMBER = (*_RPDU, 2, 3, 1, 1, 4), (*_RPDU, 2, 3, 1, 1, 5)
_TEXT = (*APC, 2, 3, 3, 0)
_ENTERPRISE_SPECIFIC = 6

# Numbers of the trap for a device, and for a phase or bank. The next number reports the end of the state.
_NUMBERS = {
    LoadState.LOW: (272, 222),
    LoadState.NEAR_OVERLOAD: (274, 224),
    LoadState.OVERLOAD: (276, 226),
}
_WORDS = {
    LoadState.LOW: "low load",
    LoadState.NEAR_OVERLOAD: "near overload",
    LoadState.OVERLOAD: "overload",
}


class Traps:
    """Sender of one trap per alarm and receiver; ``send`` takes a datagram and its destination."""

    def __init__(self, pdu: Pdu, agent: str, port: int, send: Callable[[bytes, tuple[str, int]], None]) -> None:
        """``agent`` is the agent address in traps, ``port`` the UDP port of receivers."""
        self._pdu = pdu
        self._agent = agent
        self._port = port
        self._send_datagram = send

    def send(self, alarm: Alarm) -> None:
        """Send an alarm to all enabled receivers."""
        for receiver in self._pdu.settings.receivers:
            if receiver.enabled and receiver.address != NO_ADDRESS:
                self._send_datagram(self._message(alarm, receiver.community), (receiver.address, self._port))

    def _message(self, alarm: Alarm, community: str) -> bytes:
        pdu = v1.TrapPDU()  # without set_defaults, which resolves the name of this host
        v1.apiTrapPDU.set_enterprise(pdu, APC)
        v1.apiTrapPDU.set_agent_address(pdu, self._agent)
        v1.apiTrapPDU.set_generic_trap(pdu, _ENTERPRISE_SPECIFIC)
        of_device = alarm.place == "device"
        number = _NUMBERS[alarm.state][0 if of_device else 1]
        v1.apiTrapPDU.set_specific_trap(pdu, number + (0 if alarm.active else 1))
        v1.apiTrapPDU.set_timestamp(pdu, int(self._pdu.uptime * 100) % 2**32)
        v1.apiTrapPDU.set_varbinds(pdu, self._variables(alarm))
        message = v1.Message()
        v1.apiMessage.set_defaults(message)
        v1.apiMessage.set_community(message, community)
        v1.apiMessage.set_pdu(message, pdu)
        return bytes(encoder.encode(message))

    def _variables(self, alarm: Alarm) -> list[tuple[Any, Any]]:
        """Return the variables of a trap: the bank of a phase is 0, and vice versa."""
        phase = alarm.number if alarm.place == "phase" else 0
        bank = alarm.number if alarm.place == "bank" else 0
        place = self._pdu.model.name if alarm.place == "device" else f"{alarm.place} {alarm.number}"
        text = f"Rack PDU: {place} {_WORDS[alarm.state]}{'' if alarm.active else ' cleared'}."
        found: list[tuple[tuple[int, ...], Any]] = [
            (_SERIAL, v1.OctetString(self._pdu.serial)),
            (_NAME, v1.OctetString(self._pdu.settings.name)),
        ]
        if alarm.place != "device":
            found.append(((*_BANK_NUMBER, alarm.number), v1.Integer(bank)))
        found.append(((*_PHASE_NUMBER, alarm.number), v1.Integer(phase)))
        found.append((_TEXT, v1.OctetString(text)))
        return [(v1.ObjectIdentifier(oid), value) for oid, value in found]
