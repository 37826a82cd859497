# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Desired configuration of the switches of a POD, derived from its cables. No I/O.

The result is the option ``config`` of the module ``openipu.pod.eos_pod``. Ports without a cable in the model are
not managed.
"""

from __future__ import annotations

import ipaddress
import itertools
import typing as t

from . import model
from .cabling import bonded

JUMBO = 9214  # bytes: the maximum of the reference switches, above the 9000 of the RNICs
# The RNICs of IPU-Machines use priority flow control in all classes, and the PFC-settings test checks that.
PFC_PRIORITIES = list(range(8))
_VLAN_NAME = 32  # characters

Config = dict[str, t.Any]


def switch_config(pod: model.Pod, switch: model.Switch) -> Config:
    """Return VLANs, ports and services of one switch."""
    cables = [cable for cable in pod.cables if cable.switch == switch.name]
    bonds = _bonds(cables, switch)
    ports = [
        _member(cable, switch, bonds[cable.device]) if bonded(cable.connector) else _port(cable, switch)
        for cable in cables
    ]
    vlans = sorted({vlan for cable in cables for vlan in cable.vlans})
    names = _vlan_names(pod)
    config: Config = {
        "vlans": [{"id": vlan, "name": names[vlan]} for vlan in vlans],
        "interfaces": [*bonds.values(), *ports, *_uplinks(switch, vlans), *_management(pod, switch)],
        "hostname": switch.name,
        "lldp": True,
    }
    # The management server of a POD provides NTP and syslog.
    controller = next((s for rack in pod.racks for s in rack.servers if "controller" in s.roles), None)
    services = controller and controller.interface("p2").address
    if services:
        config.update(ntp_servers=[services], syslog_servers=[services])
    return config


def _vlan_names(pod: model.Pod) -> dict[int, str]:
    """Return names of VLANs. The name of a shared VLAN contains the names of all its networks."""
    names: dict[int, list[str]] = {}
    for network in pod.networks.values():
        names.setdefault(network.vlan, []).append(network.name)
    for tenant in pod.cloud.tenants if pod.cloud else ():
        if tenant.vlan:
            names.setdefault(tenant.vlan, []).append("%s-%s" % (model.DATA, tenant.project))
        if tenant.storage:
            names.setdefault(tenant.storage.vlan, []).append("%s-%s" % (model.STORAGE, tenant.project))
    return {vlan: "-".join(each)[:_VLAN_NAME] for vlan, each in names.items()}


def _member(cable: model.Cable, switch: model.Switch, bond: Config) -> Config:
    """Return one port of a bond. The port-channel has the VLANs."""
    number = int(bond["name"].removeprefix("Port-Channel"))
    return {
        "name": cable.port,
        "description": "%s %s" % (cable.device, cable.connector),
        "port_channel": {"id": number, "lacp": "active"},
        **_fabric(switch),
    }


def _port(cable: model.Cable, switch: model.Switch) -> Config:
    port = {"name": cable.port, "description": "%s %s" % (cable.device, cable.connector), "edge": True}
    return {**port, **_vlan_mode(cable.vlans), **_fabric(switch)}


def _vlan_mode(vlans: t.Sequence[int]) -> Config:
    if len(vlans) == 1:
        return {"mode": "access", "access_vlan": vlans[0]}
    return {"mode": "trunk", "trunk_vlans": sorted(vlans)}


def _fabric(switch: model.Switch) -> Config:
    """Return the settings that IPU-over-Fabric requires on every port."""
    return {"mtu": JUMBO, "no_drop": list(PFC_PRIORITIES)} if switch.kind == model.DATA else {}


def _bonds(cables: t.Sequence[model.Cable], switch: model.Switch) -> dict[str, Config]:
    """Return the port-channel of each device with a bond on this switch, numbered in the order of the ports.

    The number of the port-channel of the uplinks is skipped.
    """
    members: dict[str, list[model.Cable]] = {}
    for cable in cables:
        if bonded(cable.connector):
            members.setdefault(cable.device, []).append(cable)
    bonds = {}
    free = (number for number in itertools.count(1) if number != switch.uplink_channel)
    for number, (device, ends) in zip(free, members.items(), strict=False):
        vlans = sorted({vlan for cable in ends for vlan in cable.vlans})
        mtu = {"mtu": JUMBO} if switch.kind == model.DATA else {}
        bonds[device] = {
            "name": "Port-Channel%d" % number,
            "description": "%s data" % device,
            "edge": True,
            **_vlan_mode(vlans),
            **mtu,
        }
    return bonds


def _uplinks(switch: model.Switch, vlans: t.Sequence[int]) -> list[Config]:
    trunk = {"mode": "trunk", "trunk_vlans": list(vlans)}
    if switch.uplink_channel is None:
        return [{"name": port, "description": "uplink", **trunk, **_fabric(switch)} for port in switch.uplinks]
    channel = {"id": switch.uplink_channel, "lacp": "active"}
    mtu = {"mtu": JUMBO} if switch.kind == model.DATA else {}
    bond = {"name": "Port-Channel%d" % switch.uplink_channel, "description": "uplinks", **trunk, **mtu}
    return [
        bond,
        *(
            {"name": port, "description": "uplink", "port_channel": channel, **_fabric(switch)}
            for port in switch.uplinks
        ),
    ]


def _management(pod: model.Pod, switch: model.Switch) -> list[Config]:
    """Return the management port of the switch, when its address and subnet are known."""
    address, subnet = switch.addresses.get("management"), pod.networks[model.MANAGEMENT].subnet
    if not address or not subnet:
        return []
    prefix = ipaddress.ip_network(subnet).prefixlen
    return [{"name": "Management1", "description": "management", "address": "%s/%d" % (address, prefix)}]
