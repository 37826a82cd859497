# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of the management interface (RFC 2863): one 100 Mbit/s Ethernet port."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from operator import attrgetter

from openipu.shared.pdu.smi import Column
from openipu.twin.devices.pdu.pdu import Pdu
from openipu.twin.devices.snmp.if_mib import INTERFACE_COUNT, INTERFACES, INTERFACES_X
from openipu.twin.devices.snmp.objects import Variable, fixed

_ROW = 1
_NAME = "eth0"
_ETHERNET = 6  # ethernetCsmacd (IANAifType-MIB)
_MEGABITS = 100
_APC = bytes((0x00, 0xC0, 0xB7))  # prefix of the MAC addresses of APC

# Column, and the member of ``Traffic`` that it reports.
_COUNTERS = (
    ("InOctets", "in_octets"),
    ("InUcastPkts", "in_packets"),
    ("OutOctets", "out_octets"),
    ("OutUcastPkts", "out_packets"),
)


def interfaces(pdu: Pdu) -> Iterator[Variable]:
    """Yield the objects of the only interface."""
    low, high = INTERFACES, INTERFACES_X
    yield fixed(INTERFACE_COUNT, 1)
    for column, value in (
        (low["Index"], _ROW),
        (low["Descr"], _NAME),
        (low["Type"], _ETHERNET),
        (low["Mtu"], 1500),
        (low["Speed"], _MEGABITS * 10**6),
        (low["PhysAddress"], mac_address(pdu)),
        (low["AdminStatus"], low["AdminStatus"].names["up"]),
        (low["OperStatus"], low["OperStatus"].names["up"]),
        (low["LastChange"], 0),
        (low["InDiscards"], 0),
        (low["InErrors"], 0),
        (low["OutDiscards"], 0),
        (low["OutErrors"], 0),
        (high["Name"], _NAME),
        (high["HCInMulticastPkts"], 0),
        (high["HCOutMulticastPkts"], 0),
        (high["HighSpeed"], _MEGABITS),
        (high["ConnectorPresent"], high["ConnectorPresent"].names["true"]),
        (high["Alias"], ""),
    ):
        yield fixed(column, value, _ROW)
    for name, member in _COUNTERS:
        yield _counter(pdu, low[name], member, 32)
        yield _counter(pdu, high[f"HC{name}"], member, 64)


def mac_address(pdu: Pdu) -> bytes:
    """Return the MAC address of a PDU, which follows from its serial number."""
    return _APC + hashlib.sha256(pdu.serial.encode()).digest()[:3]


def _counter(pdu: Pdu, column: Column, member: str, bits: int) -> Variable:
    count = attrgetter(member)
    return Variable(column, _ROW, lambda: int(count(pdu.traffic)) % 2**bits)
