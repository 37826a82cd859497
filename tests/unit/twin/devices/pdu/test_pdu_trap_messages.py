# SPDX-License-Identifier: GPL-3.0-or-later
"""Content of the traps of a PDU, without a network."""

from __future__ import annotations

import socket

import pytest
from pyasn1.codec.ber import decoder
from pysnmp.proto.api import v1

from openipu.shared.pdu.mib import APC
from openipu.twin.devices.pdu.load import LoadState
from openipu.twin.devices.pdu.pdu import Alarm
from openipu.twin.devices.pdu.settings import Receiver
from openipu.twin.devices.pdu.traps import Traps
from tests.unit.twin.devices.pdu.pdu_clock import Rack

RECEIVER = "127.0.0.9"


def test_a_trap_has_the_address_of_the_agent_without_a_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups: list[str] = []

    def lookup(name: str) -> str:
        lookups.append(name)
        raise OSError

    monkeypatch.setattr(socket, "gethostbyname", lookup)
    monkeypatch.setattr(v1.apiTrapPDU, "_networkAddress", None)  # pysnmp keeps the result of a lookup
    pdu = Rack().pdu
    pdu.settings.receivers[0] = Receiver(address=RECEIVER, enabled=True)
    sent: list[tuple[bytes, tuple[str, int]]] = []
    Traps(pdu, "127.0.0.5", 1162, lambda content, to: sent.append((content, to))).send(
        Alarm("bank", 1, LoadState.OVERLOAD, active=False)
    )
    [(content, to)] = sent
    message, rest = decoder.decode(content, asn1Spec=v1.Message())
    trap = v1.apiMessage.get_pdu(message)
    assert (rest, to, lookups) == (b"", (RECEIVER, 1162), [])
    assert (v1.apiTrapPDU.get_agent_address(trap).prettyPrint(), v1.apiTrapPDU.get_enterprise(trap)) == (
        "127.0.0.5",
        APC,
    )
    assert (int(v1.apiTrapPDU.get_generic_trap(trap)), int(v1.apiTrapPDU.get_specific_trap(trap))) == (6, 227)
    assert len(v1.apiTrapPDU.get_varbinds(trap)) == 5
