# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of a switch: its description, its interfaces and the load of its processor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from openipu.shared.pdu.mib import SYSTEM_GROUP
from openipu.shared.pdu.smi import Column, Oid, Syntax
from openipu.twin.devices.eos.counters import Rates
from openipu.twin.devices.eos.forwarding import Interface
from openipu.twin.devices.eos.ports import kind_of, numbers_of
from openipu.twin.devices.eos.show.context import ShowContext
from openipu.twin.devices.eos.show.counters import totals
from openipu.twin.devices.eos.show.interfaces import hardware_address, protocol
from openipu.twin.devices.eos.show.system import BUSY_PERCENT
from openipu.twin.devices.eos.switch import Switch
from openipu.twin.devices.snmp import if_mib
from openipu.twin.devices.snmp.if_mib import INTERFACE_COUNT, INTERFACES, INTERFACES_X
from openipu.twin.devices.snmp.objects import Objects, Value, Variable, fixed

ARISTA_SWITCHES: Oid = (1, 3, 6, 1, 4, 1, 30065, 1, 3011)
_PROCESSOR_LOAD = Column("hrProcessorLoad", (1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2), Syntax.INTEGER, "%")
_PROCESSOR = 1
_SERVICES = 14  # layers 2 to 4 (sysServices)
_TYPES = {"Port-Channel": if_mib.LAG, "Vlan": if_mib.VLAN, "Loopback": if_mib.LOOPBACK}
# EOS numbers its interfaces by kind, and ports with lanes by port and lane: Ethernet9/1 is 9001.
_FIRST_INDEX = {"Management": 999000, "Port-Channel": 1000000, "Vlan": 2000000, "Loopback": 5000000}
_LANES = 1000
_MAXIMUM = 2**32 - 1
_MEGABIT = 10**6


class SwitchObjects:
    """Objects of a switch. They are built again when its interfaces change; values are computed when they are read."""

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self._context = ShowContext(switch)
        self._interfaces: dict[str, Interface] = {}
        self._rows: dict[str, dict[str, Value]] = {}  # values by interface and column, as of the last `present`
        self._built: dict[tuple[bool, tuple[str, ...]], Objects] = {}

    def present(self, *, counter64: bool = True) -> Objects:
        """Return the objects with the present state of links and counters."""
        self._switch.counters.settle()
        self._interfaces, self._rows = self._switch.forwarding.interfaces, {}
        key = counter64, tuple(self._interfaces)
        if key not in self._built:
            kept = {known: each for known, each in self._built.items() if known[1] == key[1]}
            self._built = {**kept, key: Objects(self._variables(), counter64=counter64)}
        return self._built[key]

    def _variables(self) -> Iterator[Variable]:
        yield from _system(self._switch)
        yield fixed(INTERFACE_COUNT, len(self._interfaces))
        for name in self._interfaces:
            row = index_of(name)
            for column in (*INTERFACES.values(), *INTERFACES_X.values()):
                yield Variable(column, row, partial(self._value, name, column.name))
        yield fixed(_PROCESSOR_LOAD, round(BUSY_PERCENT), _PROCESSOR)

    def _value(self, name: str, column: str) -> Value:
        if name not in self._rows:
            interface = self._interfaces[name]
            found = _interface(self._context, interface, index_of(name), totals(self._context, interface))
            self._rows[name] = {each.name: value for each, value in found}
        return self._rows[name][column]


def index_of(name: str) -> int:
    """Return the ifIndex of an interface."""
    first, *lane = numbers_of(name)
    number = first * _LANES + lane[0] if lane else first
    return _FIRST_INDEX.get(kind_of(name), 0) + number


def _system(switch: Switch) -> Iterator[Variable]:
    group = SYSTEM_GROUP
    digits = "".join(letter if letter.isdigit() else " " for letter in switch.model).split()
    yield fixed(
        group["Descr"],
        f"Arista Networks EOS version {switch.version} running on an Arista Networks {switch.model.removesuffix('-F')}",
    )
    yield fixed(group["ObjectID"], (*ARISTA_SWITCHES, *map(int, digits)))
    yield Variable(group["UpTime"], 0, lambda: _ticks(switch, switch.clock()))
    yield Variable(group["Contact"], 0, lambda: switch.running.root.value("snmp-server", "contact") or "")
    yield Variable(group["Name"], 0, lambda: switch.hostname)
    yield Variable(group["Location"], 0, lambda: switch.running.root.value("snmp-server", "location") or "")
    yield fixed(group["Services"], _SERVICES)


def _interface(context: ShowContext, one: Interface, row: int, counted: Rates) -> Iterator[tuple[Column, Value]]:
    low, high, switch = INTERFACES, INTERFACES_X, context.switch
    kind = kind_of(one.name)
    address = "" if kind == "Loopback" else hardware_address(context, one)
    yield low["Index"], row
    yield low["Descr"], one.name
    yield low["Type"], _TYPES.get(kind, if_mib.ETHERNET)
    yield low["Mtu"], one.mtu
    yield low["Speed"], min(one.bandwidth, _MAXIMUM)
    yield low["PhysAddress"], bytes.fromhex(address.replace(":", ""))
    yield low["AdminStatus"], low["AdminStatus"].names["down" if one.link == "disabled" else "up"]
    yield low["OperStatus"], low["OperStatus"].names[protocol(one)]
    yield low["LastChange"], _ticks(switch, switch.counters.of(one.name).changed)
    yield low["InOctets"], int(counted.octets_in) % 2**32
    yield low["OutOctets"], int(counted.octets_out) % 2**32
    # All frames of the twin are multicast. None has an error, and none is discarded.
    for name in ("InUcastPkts", "InDiscards", "InErrors", "OutUcastPkts", "OutDiscards", "OutErrors"):
        yield low[name], 0
    yield high["Name"], one.name
    yield high["HCInOctets"], int(counted.octets_in)
    yield high["HCInUcastPkts"], 0
    yield high["HCInMulticastPkts"], int(counted.frames_in)
    yield high["HCOutOctets"], int(counted.octets_out)
    yield high["HCOutUcastPkts"], 0
    yield high["HCOutMulticastPkts"], int(counted.frames_out)
    yield high["HighSpeed"], one.bandwidth // _MEGABIT
    yield high["ConnectorPresent"], high["ConnectorPresent"].names["false" if kind in _TYPES else "true"]
    yield high["Alias"], one.description


def _ticks(switch: Switch, moment: float) -> int:
    """Return hundredths of seconds from the start of the switch to this time."""
    return int(max(0.0, moment - switch.booted) * 100) % 2**32
