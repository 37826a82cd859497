# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bare-metal nodes of a POD: option ``nodes`` of the module ``openstack_pod_bare_metal``, without passwords. No I/O.

IPU-Machines have no disk for an image, so they stay in the state manageable. Ironic shows and switches their power.
"""

from __future__ import annotations

import typing as t

from . import model

Node = dict[str, t.Any]

_MACHINE_PORTS = {"gw": "mgmt", "rnic": "rnic"}  # interface to connector; the BMC shares the cable of the gateway
_SERVER_PORTS = {"p1": "p1", "p2": "p2", "data": "data1"}


def nodes(pod: model.Pod, cloud: model.Cloud) -> dict[str, Node]:
    """Return the IPU-Machines and the bare-metal servers of one POD by name."""
    cables = {(cable.device, cable.connector): cable for cable in pod.cables}
    switches = {switch.name: switch for rack in pod.racks for switch in rack.switches}

    def ports(device: model.Device, connectors: dict[str, str], **settings: t.Any) -> list[Node]:
        return [
            {"mac": device.macs[name], **settings, **_link(cables.get((device.name, connector)), switches, cloud)}
            for name, connector in connectors.items()
            if name in device.macs
        ]

    found: dict[str, Node] = {}
    for rack in pod.racks:
        for machine in rack.machines:
            found[machine.name] = {
                "name": machine.name,
                "resource_class": "ipu-machine",
                "disable_power_off": True,
                "automated_clean": False,
                "interfaces": {"network": "noop"},
                "properties": _machine_properties(machine, pod),
                "traits": ["CUSTOM_IPU_MACHINE"],
                "bmc": {"address": machine.addresses[model.BMC]},
                "ports": ports(machine, _MACHINE_PORTS, pxe_enabled=False),
                "state": "manageable",
            }
        for server in rack.servers:
            if server.bare_metal:
                found[server.name] = {
                    "name": server.name,
                    "resource_class": "poplar-server",
                    "properties": {"pod": pod.name, "rack": server.rack},
                    "traits": ["CUSTOM_POPLAR_SERVER"],
                    "bmc": {"address": server.addresses["idrac"]},
                    "ports": ports(server, _SERVER_PORTS),
                    "state": "manageable",
                }
    return found


def _machine_properties(machine: model.Machine, pod: model.Pod) -> Node:
    known = {
        "serial": machine.serial,
        "rack_unit": machine.rack_unit,
        "bmc_mac": machine.macs.get("bmc"),
    }
    given = {name: value for name, value in known.items() if value is not None}
    return {"pod": pod.name, "rack": machine.rack, "unit": machine.unit, "agent": machine.agent, **given}


def _link(cable: model.Cable | None, switches: dict[str, model.Switch], cloud: model.Cloud) -> Node:
    """Return physical network and switch port of a cable. Ironic identifies a switch by its MAC."""
    if cable is None:
        return {}
    switch = switches[cable.switch]
    settings: Node = {"physical_network": cloud.physical_networks[switch.kind]}
    mac = switch.macs.get("management")
    if mac:
        settings["local_link"] = {"switch_id": mac, "port_id": cable.port, "switch_info": switch.name}
    return settings
