# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMPv1 traps of the alarms of a PDU, received at a real port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyasn1.codec.ber import decoder
from pysnmp.proto.api import v1
from pysnmp.proto.rfc1902 import Integer32, IpAddress, OctetString

from openipu.shared.pdu import mib
from tests.integration.pdu_agents import HOST, WITH_V2C, WRITES, Agents, ServedPdu, trap_port
from tests.integration.twin_pdu.snmp_manager import Manager, community, user

RECEIVER = mib.TRAP_RECEIVERS
BANK_1, PHASE_1, DEVICE = (1, 0), (0, 1), None
TEXT = (*mib.APC, 2, 3, 3, 0)


@dataclass(frozen=True)
class Trap:
    """A received trap. ``number`` is APC's specific trap; ``place`` has bank and phase."""

    community: str
    number: int
    text: str
    place: tuple[int, int] | None


@pytest.fixture
def receiver() -> Iterator[socket.socket]:
    with trap_port() as receiver:
        yield receiver


def received(receiver: socket.socket, count: int) -> list[Trap]:
    """Return the next traps."""
    return [_trap(receiver.recvfrom(2000)) for _ in range(count)]


def _trap(datagram: tuple[bytes, Any]) -> Trap:
    content, (sender, _port) = datagram
    message, rest = decoder.decode(content, asn1Spec=v1.Message())
    assert not rest
    pdu = v1.apiMessage.get_pdu(message)
    assert v1.apiTrapPDU.get_enterprise(pdu) == mib.APC
    assert v1.apiTrapPDU.get_generic_trap(pdu) == 6
    assert v1.apiTrapPDU.get_agent_address(pdu).prettyPrint() == sender == HOST
    values = {tuple(oid): value for oid, value in v1.apiTrapPDU.get_varbinds(pdu)}
    numbers = [int(value) for value in values.values() if isinstance(value, v1.Integer)]
    return Trap(
        bytes(v1.apiMessage.get_community(message)).decode(),
        int(v1.apiTrapPDU.get_specific_trap(pdu)),
        bytes(values[TEXT]).decode(),
        (numbers[0], numbers[1]) if len(numbers) == 2 else None,
    )


def add_receiver(served: ServedPdu, credentials: Any = None) -> None:
    """Configure this host as a trap receiver."""
    with Manager(served.port, credentials or user()) as manager:
        response = manager.set(
            (RECEIVER["receiverAddr"].at(1), IpAddress(HOST)),
            (RECEIVER["communityString"].at(1), OctetString("tr4p")),
            (RECEIVER["acceptThisReceiver"].at(1), Integer32(1)),
        )
        assert response.status == 0


@pytest.mark.parametrize("credentials", [user(), community(WRITES)], ids=["v3", "v2c"])
def test_traps_of_an_overload_and_its_end(agents: Agents, receiver: socket.socket, credentials: Any) -> None:
    served = agents.pdu(credentials=WITH_V2C, trap_port=receiver.getsockname()[1])
    add_receiver(served, credentials)
    served.set_loads({1: 3200.0})  # 14.2 A of a bank that warns at 13
    assert received(receiver, 1) == [Trap("tr4p", 224, "Rack PDU: bank 1 near overload.", BANK_1)]
    served.set_loads({1: 3900.0})  # 17.3 A
    assert received(receiver, 2) == [
        Trap("tr4p", 225, "Rack PDU: bank 1 near overload cleared.", BANK_1),
        Trap("tr4p", 226, "Rack PDU: bank 1 overload.", BANK_1),
    ]
    served.set_loads({})
    assert received(receiver, 1) == [Trap("tr4p", 227, "Rack PDU: bank 1 overload cleared.", BANK_1)]


def test_device_and_phase_have_separate_traps(agents: Agents, receiver: socket.socket) -> None:
    served = agents.pdu(trap_port=receiver.getsockname()[1], watts={1: 1000.0})
    add_receiver(served)
    with Manager(served.port, user()) as manager:  # thresholds above the load
        manager.set((mib.DEVICE_CONFIG["LowLoadPowerThreshold"].at(1), Integer32(20)))
        manager.set((mib.PHASE_CONFIG["LowLoadCurrentThreshold"].at(1), Integer32(20)))
    assert received(receiver, 2) == [
        Trap("tr4p", 272, "Rack PDU: AP8886 low load.", DEVICE),
        Trap("tr4p", 222, "Rack PDU: phase 1 low load.", PHASE_1),
    ]


def test_a_pdu_that_starts_in_alarm_sends_a_trap(agents: Agents, receiver: socket.socket, tmp_path: Any) -> None:
    port = receiver.getsockname()[1]
    before = agents.pdu(folder=tmp_path, trap_port=port)
    add_receiver(before)
    before.close()
    agents.pdu(folder=tmp_path, trap_port=port, watts={1: 3900.0})
    assert received(receiver, 1) == [Trap("tr4p", 226, "Rack PDU: bank 1 overload.", BANK_1)]


def test_a_disabled_receiver_gets_no_trap(agents: Agents, receiver: socket.socket) -> None:
    served = agents.pdu(trap_port=receiver.getsockname()[1])
    add_receiver(served)
    enabled = RECEIVER["acceptThisReceiver"].at(1)
    with Manager(served.port, user()) as manager:
        manager.set((enabled, Integer32(2)))
        served.set_loads({1: 3900.0})
        manager.set((enabled, Integer32(1)))
    served.set_loads({})
    assert [trap.number for trap in received(receiver, 1)] == [227]
