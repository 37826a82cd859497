# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data model of a POD: racks, devices, addresses, cables and the desired objects of the controller. No I/O.

``load.load`` creates and checks all records.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

MACHINES_PER_RACK = 32  # the most; the reference design has 16
MACHINES_PER_SWITCH = 16  # in the reference port map

# The networks of the reference design and their VLANs. BMC and GW share one VLAN.
BMC, GW, MANAGEMENT, DATA, STORAGE = "bmc", "gw", "management", "data", "storage"
VLANS = {BMC: 13, GW: 13, MANAGEMENT: 99, DATA: 11, STORAGE: 12}
VLAN_NUMBERS = (1, 4094)  # lowest and highest
# The kind of switch that carries each network, and the networks that projects of tenants may use.
SWITCHES = {BMC: MANAGEMENT, GW: MANAGEMENT, MANAGEMENT: MANAGEMENT, DATA: DATA, STORAGE: DATA}
SWITCH_MODELS = {DATA: "DCS-7060CX-32S-F", MANAGEMENT: "DCS-7010T-48-F"}  # of the reference design
CONTROL = "control"  # Neutron network of the VMs of one tenant; the switches do not know it
CONTROL_SUBNET = "10.4.0.0/24"
# Addresses have the form 10.x.y.z: x is the network, y the logical rack, z the unit.
SUBNETS = {BMC: "10.1.0.0/16", GW: "10.2.0.0/16", MANAGEMENT: "10.3.0.0/16", DATA: "10.5.0.0/16"}
DATA_MTU = 9000  # bytes, of packets on the data switches: RoCE wants jumbo frames

# The last part of an address. For an IPU-Machine it is the number in the rack. The reference design defines 101 to
# 104 for servers; the other numbers are chosen here to avoid duplicates.
FIRST_SERVER = 101
FIRST_DATA_SWITCH = 111
FIRST_MANAGEMENT_SWITCH = 121
FIRST_PDU = 131


@dataclass(frozen=True)
class Network:
    """One network: its VLAN, and its subnet (None when addresses are not assigned by rule)."""

    name: str
    vlan: int
    subnet: str | None = None


@dataclass(frozen=True)
class Interface:
    """A network interface of a device. The address is in the first of its networks."""

    name: str
    networks: tuple[str, ...]
    address: str | None = None
    mac: str | None = None


@dataclass(frozen=True)
class Device:
    """A device in a rack, with a name and interfaces."""

    name: str
    rack: str
    interfaces: tuple[Interface, ...]

    reached_by: t.ClassVar[str] = MANAGEMENT  # name of the management interface

    def interface(self, name: str) -> Interface:
        """Return the interface of this name. Raises KeyError."""
        for interface in self.interfaces:
            if interface.name == name:
                return interface
        raise KeyError(name)

    @property
    def addresses(self) -> dict[str, str]:
        """Addresses by interface name, where known."""
        return {i.name: i.address for i in self.interfaces if i.address}

    @property
    def macs(self) -> dict[str, str]:
        """MACs by interface name, where known."""
        return {i.name: i.mac for i in self.interfaces if i.mac}


@dataclass(frozen=True)
class Machine(Device):
    """An IPU-Machine: interfaces bmc, gw (one cable carries both) and rnic."""

    reached_by = "gw"
    unit: int = 0  # its number in the rack, 1 the lowest
    agent: str = ""  # id of its V-IPU agent
    rack_unit: int | None = None  # mounting height in U from the floor
    serial: str | None = None


@dataclass(frozen=True)
class Server(Device):
    """A Poplar or management server: interfaces p1 (gw), p2 and idrac (management), data (bonded, also storage)."""

    reached_by = "p2"
    roles: tuple[str, ...] = ()
    managed: bool = True  # false: the playbooks leave the device alone
    bare_metal: bool = False  # whether it is a node of Ironic


@dataclass(frozen=True)
class Switch(Device):
    """A switch of the data (100GbE) or the management (1GbE) networks: interface management."""

    kind: str = DATA
    model: str = ""
    uplinks: tuple[str, ...] = ()  # ports
    uplink_channel: int | None = None  # number of their port-channel
    managed: bool = True


@dataclass(frozen=True)
class Pdu(Device):
    """A power distribution unit: interface management."""

    model: str = ""
    managed: bool = True


@dataclass(frozen=True)
class Cable:
    """A cable from a port of a switch to a connector of a device."""

    switch: str
    port: str
    device: str
    connector: str  # of the device: mgmt (bmc and gw), rnic, p1, p2, idrac, data1, data2, management
    vlans: tuple[int, ...]


@dataclass(frozen=True)
class Rack:
    """A rack. ``number`` is the logical rack number, the third part of its addresses."""

    name: str
    number: int
    machines: tuple[Machine, ...]  # by unit
    servers: tuple[Server, ...]
    switches: tuple[Switch, ...]
    pdus: tuple[Pdu, ...]


@dataclass(frozen=True)
class Cluster:
    """IPU-Machines in cabling order: lowest in the rack first, IPU-Link domain by domain."""

    id: str
    machines: tuple[Machine, ...]
    topology: str
    num_ilds: int
    cluster_topology: str | None = None


@dataclass(frozen=True)
class Allocation:
    """Share of a cluster for one tenant: given machines, or a number of machines that the controller chooses."""

    id: str
    cluster: str
    size: int  # IPU-Machines
    machines: tuple[Machine, ...] = ()


@dataclass(frozen=True)
class Partition:
    """IPUs for one program. ``options`` are the given options of the module vipu_partition."""

    id: str
    allocation: str
    size: int  # IPUs
    options: dict[str, t.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class User:
    """User of some allocations, or administrator."""

    id: str
    role: str
    allocations: tuple[str, ...]


@dataclass(frozen=True)
class Team:
    """Team with a quota of IPUs, which applies to its orders, its Kubernetes namespace and its OpenStack project."""

    name: str
    ipus: int
    namespace: str | None = None
    project: str | None = None
    instances: int = 0  # VMs in the project


@dataclass(frozen=True)
class TenantStorage:
    """Storage network of one tenant."""

    vlan: int
    subnet: str
    nfs_servers: tuple[str, ...] | None = None  # None: all addresses of the subnet


@dataclass(frozen=True)
class Tenant:
    """OpenStack project that may use the POD. With a VLAN it has its own data network with its own machines."""

    project: str
    vlan: int | None = None
    machines: tuple[Machine, ...] = ()
    storage: TenantStorage | None = None


@dataclass(frozen=True)
class Cloud:
    """OpenStack settings of the networks of a POD."""

    physical_networks: dict[str, str]  # by kind of switch
    mtu: int  # bytes, of the networks on the data switches
    dns_domain: str | None = None  # with a final dot
    dns_servers: tuple[str, ...] = ()
    management_servers: tuple[str, ...] | None = None  # with access to controller VMs; None: controllers
    nfs_servers: tuple[str, ...] | None = None  # None: all addresses of the storage network
    external_network: str | None = None
    address_scope: bool = False
    gateways: dict[str, str] = field(default_factory=dict)  # by network
    router_addresses: dict[str, str] = field(default_factory=dict)
    pools: dict[str, tuple[str, ...]] = field(default_factory=dict)  # as first-last
    control_subnet: str | None = None  # of the control network of each tenant, None when all use the management network
    tenants: tuple[Tenant, ...] = ()


@dataclass(frozen=True)
class Kubernetes:
    """Nodes of a Kubernetes cluster that are Poplar servers of the POD."""

    label: str  # key=value, of the nodes
    nodes: tuple[str, ...]  # names in Kubernetes


@dataclass(frozen=True)
class Pod:
    """A POD."""

    name: str
    file: str
    machines_file: str
    controller_hosts: tuple[str, ...]  # names or addresses, at least one
    controller_port: int
    agent_port: int
    networks: dict[str, Network]
    racks: tuple[Rack, ...]
    cables: tuple[Cable, ...]
    clusters: tuple[Cluster, ...]
    allocations: tuple[Allocation, ...]
    partitions: tuple[Partition, ...]
    users: tuple[User, ...]
    cloud: Cloud | None = None
    kubernetes: Kubernetes | None = None
    deploy: dict[str, tuple[str, ...]] = field(default_factory=dict)  # roles for hosts, by group of the inventory
    teams: tuple[Team, ...] = ()

    @property
    def controller_host(self) -> str:
        """First host of the controller, for programs that can call only one."""
        return self.controller_hosts[0]

    @property
    def api_host(self) -> str:
        """All hosts of the controller in the form of the option ``api_host`` of the modules."""
        return ",".join(self.controller_hosts)

    @property
    def machines(self) -> tuple[Machine, ...]:
        """All IPU-Machines, by rack and from the lowest up."""
        return tuple(machine for rack in self.racks for machine in rack.machines)

    @property
    def devices(self) -> t.Iterator[Device]:
        """All devices, by rack."""
        for rack in self.racks:
            yield from rack.machines
            yield from rack.servers
            yield from rack.switches
            yield from rack.pdus

    def desired(self) -> dict[str, list[dict[str, t.Any]]]:
        """Return the desired objects of the controller as options of the module ``openipu.pod.vipu_pod``."""
        return {
            "agents": [
                {"id": machine.agent, "host": machine.interface(GW).address, "port": self.agent_port}
                for machine in self.machines
            ],
            "clusters": [
                {
                    "id": cluster.id,
                    "agents": [machine.agent for machine in cluster.machines],
                    "num_ilds": cluster.num_ilds,
                    "topology": cluster.topology,
                    **({"cluster_topology": cluster.cluster_topology} if cluster.cluster_topology else {}),
                }
                for cluster in self.clusters
            ],
            "allocations": [
                {"id": allocation.id, "cluster": allocation.cluster, **_machines(allocation)}
                for allocation in self.allocations
            ],
            "partitions": [
                {"id": partition.id, "allocation": partition.allocation, "size": partition.size, **partition.options}
                for partition in self.partitions
            ],
            "users": [{"id": user.id, "role": user.role, "allocations": list(user.allocations)} for user in self.users],
        }


def _machines(allocation: Allocation) -> dict[str, t.Any]:
    if allocation.machines:
        return {"agents": [machine.agent for machine in allocation.machines]}
    return {"size": allocation.size}
