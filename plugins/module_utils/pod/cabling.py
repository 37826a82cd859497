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

The reference design defines the uplinks; the other ports are chosen here.
``cables`` in pod.yml replaces any part of the map.
"""

from __future__ import annotations

import typing as t

from . import model, spec
from .addresses import UniqueValues
from .mistakes import Mistakes, PodError
from .source import Block, unknown

SWITCH_MODELS = {model.DATA: "DCS-7060CX-32S-F", model.MANAGEMENT: "DCS-7010T-48-F"}
_PORTS = {
    "DCS-7060CX-32S-F": frozenset(
        ["Ethernet%d/%d" % (port, lane) for port in range(1, 33) for lane in range(1, 5)]
        + ["Ethernet33", "Ethernet34", "Management1"]
    ),
    "DCS-7010T-48-F": frozenset(["Ethernet%d" % port for port in range(1, 53)] + ["Management1"]),
}
_MACHINES = 16  # in the reference port map
_SERVERS = 4
_DATA_SWITCHES = 4
_PDUS = 8

_BOND = ("data1", "data2")  # the members of the bond of a server

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
    first = {switch.kind: switch.name for switch in reversed(rack.switches)}
    data, management = first.get(model.DATA), first.get(model.MANAGEMENT)
    machines = [machine for machine in rack.machines if machine.unit <= _MACHINES]
    if data:
        for machine in machines:
            places[machine.name, "rnic"] = (data, "Ethernet%d/1" % (8 + machine.unit))
        for index, server in enumerate(rack.servers[:_SERVERS]):
            for number in (1, 2):
                places[server.name, "data%d" % number] = (data, "Ethernet%d/1" % (24 + 2 * index + number))
    if management:
        for machine in machines:
            places[machine.name, "mgmt"] = (management, "Ethernet%d" % machine.unit)
        for index, server in enumerate(rack.servers[:_SERVERS]):
            for number, connector in enumerate(("p1", "p2", "idrac"), 17 + 3 * index):
                places[server.name, connector] = (management, "Ethernet%d" % number)
        tors = [switch for switch in rack.switches if switch.kind == model.DATA]
        for port, switch in enumerate(tors[:_DATA_SWITCHES], 37):
            places[switch.name, "management"] = (management, "Ethernet%d" % port)
        for port, pdu in enumerate(rack.pdus[:_PDUS], 41):
            places[pdu.name, "management"] = (management, "Ethernet%d" % port)
    return places


def cables(
    racks: t.Sequence[tuple[model.Rack, Block]], networks: dict[str, model.Network], mistakes: Mistakes
) -> tuple[model.Cable, ...]:
    """Return all cables: the reference port map, overridden by ``cables`` of each rack. Record mistakes."""
    devices: dict[str, model.Device] = {}
    for rack, _block in racks:
        for group in (rack.machines, rack.servers, rack.switches, rack.pdus):
            devices.update((device.name, device) for device in group)
    result: list[model.Cable] = []
    ports, ends = UniqueValues("port"), UniqueValues("cable end")

    def plug(cable: model.Cable, place: PodError) -> None:
        ports.take("%s of %s" % (cable.port, cable.switch), "%s of %s" % (cable.connector, cable.device), place)
        result.append(cable)

    for rack, block in racks:
        explicit = set()
        for row, owner in zip(block.get("switches") or (), rack.switches, strict=True):
            for uplink in owner.uplinks:
                with mistakes.collect():
                    _check_port(owner, uplink, row, "uplinks")
                    ports.take("%s of %s" % (uplink, owner.name), "an uplink", row.error("", "uplinks"))
        for row in spec.RACK.children(block, "cables", mistakes):
            with mistakes.collect():
                cable = _explicit_cable(row, devices, networks)
                end = "%s of %s" % (cable.connector, cable.device)
                ends.take(end, "%s of %s" % (cable.port, cable.switch), row.error("", "connector"))
                explicit.add((cable.device, cable.connector))
                plug(cable, row.error("", "port"))
        for (name, connector), (switch, port) in reference(rack).items():
            if (name, connector) not in explicit:
                vlans = _vlans(connectors(devices[name])[connector], networks)
                with mistakes.collect():
                    plug(model.Cable(switch, port, name, connector, vlans), block.error("", "cables"))
    cabled = {cable.device for cable in result}
    for rack, block in racks:
        for row, server in zip(block.get("servers") or (), rack.servers, strict=True):
            if rack.switches and server.name not in cabled:
                message = "server '%s' has no cable: the reference port map has ports for %d servers. Set 'cables'"
                mistakes.add(row.error(message % (server.name, _SERVERS), "name"))
    return tuple(result)


def _explicit_cable(row: Block, devices: dict[str, model.Device], networks: dict[str, model.Network]) -> model.Cable:
    device, switch = (_device(row, key, devices) for key in ("device", "switch"))
    if not isinstance(switch, model.Switch):
        raise row.error("'%s' is not a switch: name a switch of the POD" % switch.name, "switch")
    known = connectors(device)
    if row["connector"] not in known:
        raise row.error(unknown("connector of '%s'" % device.name, row["connector"], known), "connector")
    _check_port(switch, row["port"], row, "port")
    vlans = tuple(row["vlans"] or ()) or _vlans(known[row["connector"]], networks)
    for vlan in vlans:
        if vlan not in {network.vlan for network in networks.values()}:
            names = ", ".join("%d (%s)" % (network.vlan, network.name) for network in networks.values())
            raise row.error("VLAN %d belongs to no network: use one of %s" % (vlan, names), "vlans")
    return model.Cable(switch.name, row["port"], device.name, row["connector"], vlans)


def bonded(connector: str) -> bool:
    """Return whether the connector is a member of a bond."""
    return connector in _BOND


def cable_macs(device: model.Device, connector: str) -> list[str]:
    """Return the known MACs behind a cable."""
    names = {"mgmt": ("bmc", "gw"), **dict.fromkeys(_BOND, ("data",))}.get(connector, (connector,))
    return [device.macs[name] for name in names if name in device.macs]


def _check_port(switch: model.Switch, port: str, row: Block, key: str) -> None:
    if switch.model in _PORTS and port not in _PORTS[switch.model]:
        raise row.error(unknown("port of a %s" % switch.model, port, _PORTS[switch.model]), key)


def _device(row: Block, key: str, devices: dict[str, model.Device]) -> model.Device:
    if row[key] not in devices:
        raise row.error(unknown(key, row[key], devices), key)
    return devices[row[key]]


def _vlans(names: tuple[str, ...], networks: dict[str, model.Network]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(networks[name].vlan for name in names))
