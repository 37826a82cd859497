# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of ``openipu.twin.rack.main`` for the rack twin of a POD. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openipu.process.background import Endpoint
from openipu.shared.pod import model
from openipu.shared.pod.cabling import bonded, cable_macs
from openipu.twin.devices.logins import EAPI_PORT, SNMP_PORT
from openipu.vipu.metrics.address import PORT as METRICS_PORT

LOOPBACK = "lo"  # network interface of the twin
_FEEDS = 2  # power supplies of a device, each at its own PDU where the rack has two

Config = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Options of a twin that the POD does not define."""

    snmp_community: str = ""  # with read access to switches and PDUs over SNMPv1 and v2c; empty: SNMPv3 only
    discovery: bool = False  # agents announce themselves, and the controller discovers them


_DEFAULT = Options()


def rack(pod: model.Pod, options: Options = _DEFAULT) -> Config:
    """Return the configuration of the rack process; a machine without a cluster gets its own."""
    clusters = [(cluster.topology, cluster.num_ilds, cluster.machines) for cluster in pod.clusters]
    clustered = {machine.name for cluster in pod.clusters for machine in cluster.machines}
    clusters += [("mesh", 1, (machine,)) for machine in pod.machines if machine.name not in clustered]
    config: Config = {
        "names": {machine.name: machine.agent for machine in pod.machines},
        "clusters": [
            {"topology": topology, "ilds": ilds, "machines": [_machine(machine, pod) for machine in machines]}
            for topology, ilds, machines in clusters
        ],
    }
    unmanaged = [switch.name for each in pod.racks for switch in each.switches if not switch.managed]
    unmanaged += [pdu.name for each in pod.racks for pdu in each.pdus if not pdu.managed]
    if unmanaged:
        config["unmanaged"] = unmanaged
    if options.discovery:
        config["announce_interfaces"] = [LOOPBACK]
    if _switches(pod) or _pdus(pod):
        config["devices"] = {
            "agents": {machine.name: machine.agent for machine in pod.machines},
            "switches": [_switch(switch, pod, options.snmp_community) for switch in _switches(pod)],
            "pdus": [_pdu(pdu, options.snmp_community) for pdu in _pdus(pod)],
            "feeds": [feed for each in pod.racks for feed in _feeds(each)],
        }
    return config


def agent_endpoint(machine: model.Machine, pod: model.Pod) -> Endpoint:
    """Return the endpoint of the agent of a machine."""
    return Endpoint(machine.addresses["gw"], pod.agent_port)


def endpoints(pod: model.Pod) -> list[Endpoint]:
    """Return all endpoints of the rack process."""
    return [
        *(agent_endpoint(machine, pod) for machine in pod.machines),
        *(Endpoint(machine.addresses["gw"], METRICS_PORT) for machine in pod.machines),
        *(Endpoint(switch.addresses["management"], EAPI_PORT) for switch in _switches(pod)),
        *(Endpoint(switch.addresses["management"], SNMP_PORT, udp=True) for switch in _switches(pod)),
        *(Endpoint(pdu.addresses["management"], SNMP_PORT, udp=True) for pdu in _pdus(pod)),
    ]


def contents(pod: model.Pod) -> str:
    """Return the number of machines, switches and PDUs, as text for messages."""
    counts = [
        (len(pod.machines), "IPU-Machine", "s"),
        (len(_switches(pod)), "switch", "es"),
        (len(_pdus(pod)), "PDU", "s"),
    ]
    return ", ".join(f"{count} {what}{'' if count == 1 else plural}" for count, what, plural in counts if count)


def hosts(pod: model.Pod) -> list[str]:
    """Return all addresses that the rack process listens on or reports."""
    machines = [each.addresses[name] for each in pod.machines for name in ("gw", "rnic") if name in each.addresses]
    return [*machines, *(device.addresses["management"] for device in (*_switches(pod), *_pdus(pod)))]


def _switches(pod: model.Pod) -> list[model.Switch]:
    return [switch for each in pod.racks for switch in each.switches if switch.managed and _addressed(switch)]


def _pdus(pod: model.Pod) -> list[model.Pdu]:
    return [pdu for each in pod.racks for pdu in each.pdus if pdu.managed and _addressed(pdu)]


def _addressed(device: model.Device) -> bool:
    return "management" in device.addresses


def _machine(machine: model.Machine, pod: model.Pod) -> Config:
    endpoint = agent_endpoint(machine, pod)
    settings = {
        "agent_id": machine.agent,
        "host": endpoint.host,
        "port": endpoint.port,
        "serial": machine.serial or "",
        "metrics_port": METRICS_PORT,
    }
    return {**settings, "rnic_address": machine.addresses.get("rnic", "")}


def _switch(switch: model.Switch, pod: model.Pod, community: str) -> Config:
    devices = {device.name: device for device in pod.devices}
    subnet = pod.networks[model.MANAGEMENT].subnet
    return {
        "name": switch.name,
        "model": switch.model,
        "host": switch.addresses["management"],
        **({"community": community} if community else {}),
        "prefix": int(subnet.partition("/")[2]) if subnet else 24,
        "port": EAPI_PORT,
        "snmp_port": SNMP_PORT,
        "plugs": [
            {
                "port": cable.port,
                "device": cable.device,
                "connector": cable.connector,
                "macs": cable_macs(devices[cable.device], cable.connector),
                "vlan": cable.vlans[0] if len(cable.vlans) > 1 else None,
                "lacp": bonded(cable.connector),
                "lldp_port": _lldp_port(devices[cable.device], cable.connector),
            }
            for cable in pod.cables
            if cable.switch == switch.name
        ],
    }


def _lldp_port(device: model.Device, connector: str) -> str:
    """Return the LLDP port id of a device; empty for a device without LLDP, such as a management controller."""
    if isinstance(device, model.Switch):
        return "Management1"
    return connector if isinstance(device, model.Server) and connector != "idrac" else ""


def _pdu(pdu: model.Pdu, community: str) -> Config:
    config = {"name": pdu.name, "model": pdu.model, "host": pdu.addresses["management"], "port": SNMP_PORT}
    return {**config, "community": community} if community else config


def _feeds(each: model.Rack) -> list[Config]:
    """Return the PDUs of each device, those of one kind one after the other."""
    pdus = [pdu.name for pdu in each.pdus if pdu.managed and _addressed(pdu)]
    return [
        {"device": device.name, "kind": type(device).__name__.lower(), "pdus": pdus[:_FEEDS]}
        for device in (*each.machines, *each.servers, *each.switches)
        if pdus
    ]
