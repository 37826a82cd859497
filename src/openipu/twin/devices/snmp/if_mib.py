# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of IF-MIB (RFC 2863)."""

from __future__ import annotations

from openipu.shared.pdu.smi import Column, Oid, Syntax, Table, choice, integer, text

_MIB_2: Oid = (1, 3, 6, 1, 2, 1)
ETHERNET, LOOPBACK, VLAN, LAG = 6, 24, 136, 161  # ifType (IANAifType-MIB)
_STATES = ("up", "down", "testing", "unknown", "dormant", "notPresent", "lowerLayerDown")


def _counter(name: str, number: int, syntax: Syntax = Syntax.COUNTER) -> Column:
    return Column(name, (number,), syntax)


def _gauge(name: str, number: int) -> Column:
    return Column(name, (number,), Syntax.GAUGE)


INTERFACE_COUNT = Column("ifNumber", (*_MIB_2, 2, 1), Syntax.INTEGER)

INTERFACES = Table(
    "if",
    (*_MIB_2, 2, 2, 1),
    integer("Index", 1),
    text("Descr", 2),
    integer("Type", 3),
    integer("Mtu", 4),
    _gauge("Speed", 5),
    text("PhysAddress", 6),
    choice("AdminStatus", 7, "up", "down", "testing"),
    choice("OperStatus", 8, *_STATES),
    Column("LastChange", (9,), Syntax.TIME_TICKS, "s", 100),
    _counter("InOctets", 10),
    _counter("InUcastPkts", 11),
    _counter("InDiscards", 13),
    _counter("InErrors", 14),
    _counter("OutOctets", 16),
    _counter("OutUcastPkts", 17),
    _counter("OutDiscards", 19),
    _counter("OutErrors", 20),
)

INTERFACES_X = Table(
    "if",
    (*_MIB_2, 31, 1, 1, 1),
    text("Name", 1),
    _counter("HCInOctets", 6, Syntax.COUNTER64),
    _counter("HCInUcastPkts", 7, Syntax.COUNTER64),
    _counter("HCInMulticastPkts", 8, Syntax.COUNTER64),
    _counter("HCOutOctets", 10, Syntax.COUNTER64),
    _counter("HCOutUcastPkts", 11, Syntax.COUNTER64),
    _counter("HCOutMulticastPkts", 12, Syntax.COUNTER64),
    _gauge("HighSpeed", 15),
    choice("ConnectorPresent", 17, "true", "false"),
    text("Alias", 18),
)
