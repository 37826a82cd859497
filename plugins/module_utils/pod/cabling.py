# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cables between the devices of a rack and the ports of its switches.

The reference port map of the 100GbE switch:

* 1 to 8: uplinks
* 9 to 24: RNICs of units 1 to 16
* 25 to 32: two ports of each of four servers

That of the 1GbE switch:

* 1 to 16: management cables of units 1 to 16 (BMC and GW share one)
* from 17: p1, p2 and idrac of each of four servers
* from 37: management ports of the data switches
* from 41: management ports of the PDUs

Units 17 to 32 use the same ports of the second 100GbE and the second 1GbE switch of the rack.
The reference design defines the uplinks; the other ports are chosen here.
``cables`` in pod.yml replaces any part of the map.
"""

from __future__ import annotations

import re

from . import model, spec
from .addresses import UniqueValues
from .devices import Devices
from .mistakes import LeftOut, Mistakes, PodError, unknown
from .source import Block

_PORTS = {
    "DCS-7060CX-32S-F": frozenset(
        ["Ethernet%d/%d" % (port, lane) for port in range(1, 33) for lane in range(1, 5)]
        + ["Ethernet33", "Ethernet34", "Management1"]
    ),
    "DCS-7010T-48-F": frozenset(["Ethernet%d" % port for port in range(1, 53)] + ["Management1"]),
}
_SHORT_PORT = re.compile(r"(?i:(?P<kind>et[a-z]*|ma[a-z]*)? *)(?P<number>[0-9]+(?:/[0-9]+)?)")
_SERVERS = 4  # in the reference port map
_DATA_SWITCHES = 4
_PDUS = 8

_BOND = ("data1", "data2")  # the members of the bond of a server

_Cabled = model.Machine | model.Server | model.Switch | model.Pdu
_LABELS = {model.Machine: "machine", model.Server: "server", model.Switch: "switch", model.Pdu: "PDU"}

Connectors = dict[str, tuple[str, ...]]  # networks by connector of a device


def connectors(device: model.Device) -> Connectors:
    """Return the connectors of a device and the networks of each."""
    if isinstance(device, model.Machine):
        return {"mgmt": (model.BMC, model.GW), "rnic": (model.DATA,)}
    if isinstance(device, model.Server):
        bond = (model.DATA, model.STORAGE)
        return {
            "p1": (model.GW,),
            "p2": (model.MANAGEMENT,),
            "idrac": (model.MANAGEMENT,),
            **dict.fromkeys(_BOND, bond),
        }
    return {"management": (model.MANAGEMENT,)}


def reference(rack: model.Rack) -> dict[tuple[str, str], tuple[str, str]]:
    """Return (device, connector) to (switch, port) for all cables of the reference port map."""
    places: dict[tuple[str, str], tuple[str, str]] = {}
    tors, managers = (
        [switch.name for switch in rack.switches if switch.kind == kind] for kind in (model.DATA, model.MANAGEMENT)
    )
    if tors:
        for machine in rack.machines:
            switch, position = divmod(machine.unit - 1, model.MACHINES_PER_SWITCH)
            if switch < len(tors):
                places[machine.name, "rnic"] = (tors[switch], "Ethernet%d/1" % (9 + position))
        for index, server in enumerate(rack.servers[:_SERVERS]):
            for number in (1, 2):
                places[server.name, "data%d" % number] = (tors[0], "Ethernet%d/1" % (24 + 2 * index + number))
    if managers:
        for machine in rack.machines:
            switch, position = divmod(machine.unit - 1, model.MACHINES_PER_SWITCH)
            if switch < len(managers):
                places[machine.name, "mgmt"] = (managers[switch], "Ethernet%d" % (1 + position))
        for index, server in enumerate(rack.servers[:_SERVERS]):
            for number, connector in enumerate(("p1", "p2", "idrac"), 17 + 3 * index):
                places[server.name, connector] = (managers[0], "Ethernet%d" % number)
        for port, tor in enumerate(tors[:_DATA_SWITCHES], 37):
            places[tor, "management"] = (managers[0], "Ethernet%d" % port)
        for port, pdu in enumerate(rack.pdus[:_PDUS], 41):
            places[pdu.name, "management"] = (managers[0], "Ethernet%d" % port)
    return places


def cables(devices: Devices, mistakes: Mistakes, left_out: LeftOut) -> tuple[model.Cable, ...]:
    """Return all cables: the reference port map, overridden by ``cables`` of each rack. Record mistakes."""
    return _Cabling(devices, mistakes, left_out).cables()


class _Cabling:
    """Reader of the cables of one POD."""

    def __init__(self, devices: Devices, mistakes: Mistakes, left_out: LeftOut) -> None:
        self._racks = list(zip(devices.racks, devices.blocks, strict=True))
        self._networks = devices.plan.networks
        self._rows = devices.rows
        self._devices: dict[str, model.Device] = {
            device.name: device for rack in devices.racks for device in _devices(rack)
        }
        self._mistakes = mistakes
        self._left_out = left_out
        self._ports, self._ends = UniqueValues("port"), UniqueValues("cable end")
        self._found: list[model.Cable] = []
        self._explicit: set[tuple[str, str]] = set()  # devices with connectors
        self._doubtful: set[str] = set()  # devices whose cables have mistakes

    def cables(self) -> tuple[model.Cable, ...]:
        """Return the cables of all racks."""
        # A cable of any rack can move that of a device in another one.
        given = [spec.RACK.children(block, "cables", self._mistakes) for _rack, block in self._racks]
        self._explicit = {(str(row["device"]), str(row["connector"])) for rows in given for row in rows}
        for (rack, block), rows in zip(self._racks, given, strict=True):
            self._read(rack, block, rows)
        if any(rack.switches for rack, _block in self._racks):
            cabled: dict[str, list[model.Cable]] = {}
            for cable in self._found:
                cabled.setdefault(cable.device, []).append(cable)
            for rack, block in self._racks:
                self._check_connectors(rack, block, cabled)
        return tuple(self._found)

    def _read(self, rack: model.Rack, block: Block, rows: list[Block]) -> None:
        """Add the cables of a rack, with ``rows`` of its key ``cables``."""
        for owner in rack.switches:
            row = self._rows[owner.name]
            for uplink in owner.uplinks:
                with self._mistakes.collect():
                    _check_port(owner, uplink, row, "uplinks")
                    self._ports.take("%s of %s" % (uplink, owner.name), "an uplink", row.error("", "uplinks"))
        for row in rows:
            plugged = False
            with self._mistakes.collect():
                if not row.invalid:
                    self._plug(self._explicit_cable(row, rack), row.error("", "port"))
                    plugged = True
            if not plugged:
                self._doubtful.update([row["device"]] if row["device"] in self._devices else self._devices)
        if "cables" in block.invalid:
            self._doubtful.update(self._devices)
        if rack.name in self._left_out.switches:
            self._doubtful.update(device.name for device in _devices(rack))
            return
        for (name, connector), (switch, port) in reference(rack).items():
            if (name, connector) not in self._explicit:
                vlans = _vlans(connectors(self._devices[name])[connector], self._networks)
                plugged = False
                with self._mistakes.collect():
                    self._plug(model.Cable(switch, port, name, connector, vlans), block.error("", "cables"))
                    plugged = True
                if not plugged:
                    self._doubtful.add(name)

    def _plug(self, cable: model.Cable, place: PodError) -> None:
        self._ports.take("%s of %s" % (cable.port, cable.switch), "%s of %s" % (cable.connector, cable.device), place)
        self._found.append(cable)

    def _explicit_cable(self, row: Block, rack: model.Rack) -> model.Cable:
        device = self._device(row, "device", "cable of rack '%s'" % rack.name)
        subject = "cable of '%s'" % device.name
        switch = self._device(row, "switch", subject)
        if not isinstance(switch, model.Switch):
            raise row.error("'%s' is not a switch: name a switch of the POD" % switch.name, "switch")
        known = connectors(device)
        if row["connector"] not in known:
            raise row.error(unknown("connector of '%s'" % device.name, row["connector"], known), "connector")
        vlans = tuple(row["vlans"] or ()) or _vlans(known[row["connector"]], self._networks)
        for vlan in vlans:
            if vlan not in {network.vlan for network in self._networks.values()}:
                names = ", ".join("%d (%s)" % (network.vlan, network.name) for network in self._networks.values())
                error = row.error("VLAN %d belongs to no network: use one of %s" % (vlan, names), "vlans")
                raise error.unless(bool(self._left_out.vlans))
        self._check_kind(row, switch, vlans)
        _check_port(switch, row["port"], row, "port", subject + ": ")
        end = "%s of %s" % (row["connector"], device.name)
        self._ends.take(end, "%s of %s" % (row["port"], switch.name), row.error("", "connector"))
        return model.Cable(switch.name, row["port"], device.name, row["connector"], vlans)

    def _check_kind(self, row: Block, switch: model.Switch, vlans: tuple[int, ...]) -> None:
        """Reject a VLAN of a network that the other kind of switch carries."""
        kinds = {network.vlan: model.SWITCHES[network.name] for network in self._networks.values()}
        for vlan in vlans:
            if kinds[vlan] != switch.kind:
                message = "%s of '%s' has VLAN %d of a %s network, and '%s' is a %s switch: %s"
                remedy = "correct 'vlans'" if row["vlans"] else "name a %s switch" % kinds[vlan]
                parts = (row["connector"], row["device"], vlan, kinds[vlan], switch.name, switch.kind, remedy)
                error = row.error(message % parts, "vlans" if row["vlans"] else "switch")
                raise error.unless(bool(self._left_out.vlans))

    def _device(self, row: Block, key: str, subject: str) -> model.Device:
        """Return the device or switch of a cable. Raises PodError."""
        if row[key] not in self._devices:
            message = "%s: %s" % (subject, unknown(key, row[key], self._devices, self._mistakes))
            kinds = ("switch",) if key == "switch" else LeftOut.KINDS
            raise row.error(message, key).unless(self._left_out.explains(row[key], *kinds))
        return self._devices[row[key]]

    def _check_connectors(self, rack: model.Rack, block: Block, cabled: dict[str, list[model.Cable]]) -> None:
        """Record managed devices of a rack without the cables that they need.

        Several devices that need a switch of a kind which the rack does not have are one mistake, that of the rack.
        """
        kinds = {switch.kind for switch in rack.switches}
        absent: set[str] = set()
        without_switch: list[tuple[_Cabled, list[str]]] = []
        other: list[tuple[_Cabled, list[str]]] = []
        for device in _devices(rack):
            missing = [] if device.name in self._doubtful else self._missing(device, cabled.get(device.name, []))
            networks = connectors(device)
            needed = {model.SWITCHES[networks[connector][0]] for connector in missing} - kinds
            absent |= needed
            if missing:
                (without_switch if needed else other).append((device, missing))
        absence = "rack '%s' has no %s switch" % (rack.name, " and no ".join(sorted(absent)))
        if len(without_switch) > 1:
            device, missing = without_switch[0]
            message = "%s, so %d devices have no cable, such as %s '%s' for %s: add it to 'switches', or set 'cables'"
            label = _LABELS[type(device)]
            parts = (absence, len(without_switch), label, device.name, ", ".join(missing))
            self._mistakes.add(block.error(message % parts, "switches"))
        elif without_switch:
            self._report_missing(*without_switch[0], absence, "add it to 'switches', or set 'cables'")
        for device, missing in other:
            self._report_missing(device, missing, "the reference port map has no port for it", "set 'cables'")

    def _report_missing(self, device: _Cabled, missing: list[str], reason: str, remedy: str) -> None:
        """Record a device without the cables of some connectors."""
        if not isinstance(device, model.Machine):
            remedy += ", or set 'managed: false'"
        message = "%s '%s' has no cable for %s, because %s: %s"
        parts = (_LABELS[type(device)], device.name, ", ".join(missing), reason, remedy)
        self._mistakes.add(self._rows[device.name].error(message % parts, "name"))

    def _missing(self, device: _Cabled, cables: list[model.Cable]) -> list[str]:
        """Return the connectors without a cable that the playbooks or IPU programs use."""
        if isinstance(device, model.Machine):
            required = ["mgmt", "rnic"]
        elif not device.managed or (isinstance(device, model.Switch) and device.kind == model.MANAGEMENT):
            required = []
        elif isinstance(device, model.Server):
            # Any cable with the VLAN will do: p1 can be a trunk, which also carries the network of p2.
            carried = {vlan for cable in cables if cable.connector != "idrac" for vlan in cable.vlans}
            uses = {
                "p1": "controller" in device.roles and model.GW,
                "p2": model.MANAGEMENT,
                "data1": "poplar" in device.roles and model.DATA,
            }
            found = [name for name, network in uses.items() if network and self._networks[network].vlan not in carried]
            required = [*found, "idrac"] if "idrac" in device.addresses else found
        else:
            required = ["management"]
        plugged = {cable.connector for cable in cables}
        return [connector for connector in required if connector not in plugged]


def bonded(connector: str) -> bool:
    """Return whether the connector is a member of a bond."""
    return connector in _BOND


def cable_macs(device: model.Device, connector: str) -> list[str]:
    """Return the known MACs behind a cable."""
    names = {"mgmt": ("bmc", "gw"), **dict.fromkeys(_BOND, ("data",))}.get(connector, (connector,))
    return [device.macs[name] for name in names if name in device.macs]


def _devices(rack: model.Rack) -> tuple[_Cabled, ...]:
    return (*rack.machines, *rack.servers, *rack.switches, *rack.pdus)


def _check_port(switch: model.Switch, port: str, row: Block, key: str, subject: str = "") -> None:
    known = _PORTS.get(switch.model)
    if known and port not in known:
        kind = "port of a %s" % switch.model
        near = next((name for name in _full_names(port) if name in known), None)
        if near:
            message = "unknown %s '%s': did you mean '%s'?" % (kind, port, near)
        else:
            message = unknown(kind, port, known, full_names=_full_names)
        raise row.error("%sswitch '%s': %s" % (subject, switch.name, message), key)


def _full_names(port: str) -> list[str]:
    """Return the possible full names of a port that is a number or has a short name of EOS, such as Et29 or Ma1."""
    short = _SHORT_PORT.fullmatch(port)
    if not short:
        return []
    if (short["kind"] or "").lower().startswith("ma"):
        return ["Management%s" % short["number"]]
    return ["Ethernet%s" % short["number"], "Ethernet%s/1" % short["number"]]


def _vlans(names: tuple[str, ...], networks: dict[str, model.Network]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(networks[name].vlan for name in names))
