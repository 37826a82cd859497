# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What OpenStack is to know of the networks of a POD: the option ``config`` of ``openstack_pod_network``. Pure."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from . import model
from .filtering import security_groups

Config = dict[str, t.Any]

EVERYBODY = "*"  # tenants that pod.yml does not name

_MACHINE_NETWORKS = {"bmc": model.BMC, "gw": model.GW, "rnic": model.DATA}  # by interface
_BLOCK = 256  # addresses of a logical rack
_FIRST_FREE = 150  # devices of the POD have lower numbers in the rack, unless told
_NO_NAME = re.compile(r"[^a-z0-9-]+")


def network_config(pod: model.Pod, cloud: model.Cloud) -> Config:
    """Networks, subnets, ports, security groups, routers and shares of one POD."""
    merged = _merged(pod)
    own = [tenant for tenant in cloud.tenants if tenant.vlan]
    data = {machine.name: data_name(pod, tenant) for tenant in own for machine in tenant.machines}
    subnets = [
        _subnet(pod, cloud, name, network_name(pod, names), subnet_name(pod, name))
        for names in merged.values()
        for name in names
        if pod.networks[name].subnet
    ]
    subnets += [
        _subnet(pod, cloud, model.DATA, data_name(pod, tenant), data_name(pod, tenant))
        for tenant in own
        if pod.networks[model.DATA].subnet
    ]
    config: Config = {
        "networks": [
            *(_network(pod, cloud, network_name(pod, names), names[0]) for names in merged.values()),
            *(_network(pod, cloud, data_name(pod, tenant), model.DATA, tenant.vlan) for tenant in own),
        ],
        "subnets": subnets,
        "security_groups": security_groups(pod, cloud),
        "ports": list(_ports(pod, networks(pod), data)),
        "routers": _routers(pod, cloud, own),
        "shares": _shares(pod, cloud),
    }
    if cloud.address_scope:
        config.update(_scope(pod, subnets))
    return config


def _merged(pod: model.Pod) -> dict[tuple[str, int], list[str]]:
    """Networks that share a VLAN on the same switches are one network of Neutron, with a subnet each."""
    wires: dict[tuple[str, int], list[str]] = {}
    for network in pod.networks.values():
        wires.setdefault((model.SWITCHES[network.name], network.vlan), []).append(network.name)
    return wires


def networks(pod: model.Pod) -> dict[str, str]:
    """What the networks of the POD are called in Neutron."""
    return {name: network_name(pod, names) for names in _merged(pod).values() for name in names}


def network_name(pod: model.Pod, names: t.Sequence[str]) -> str:
    """What the network of Neutron is called that stands for these networks of the POD."""
    return "%s-%s" % (pod.name, "-".join(names))


def subnet_name(pod: model.Pod, name: str) -> str:
    """What the subnet of a network of the POD is called in Neutron."""
    return "%s-%s" % (pod.name, name)


def data_name(pod: model.Pod, tenant: model.Tenant) -> str:
    """What the data network is called that one tenant has to itself, and its subnet and router."""
    return "%s-%s-%s" % (pod.name, model.DATA, tenant.project)


def _network(pod: model.Pod, cloud: model.Cloud, called: str, name: str, vlan: int | None = None) -> Config:
    kind = model.SWITCHES[name]
    network = {
        "name": called,
        "vlan": vlan or pod.networks[name].vlan,
        "physical_network": cloud.physical_networks[kind],
        # IPU-over-Fabric is not filtered: a virtual function passes by every filter of the hypervisor anyway.
        "port_security": name != model.DATA,
    }
    if kind == model.DATA:
        network["mtu"] = cloud.mtu
    if cloud.dns_domain:
        network["dns_domain"] = cloud.dns_domain
    return network


def _subnet(pod: model.Pod, cloud: model.Cloud, name: str, network: str, called: str) -> Config:
    cidr = ipaddress.IPv4Network(pod.networks[name].subnet or "")
    gateway = cloud.gateways.get(name) or (str(cidr[-2]) if _routed(cloud, name) else None)
    pools = list(cloud.pools.get(name) or _pools(pod, cloud, name, cidr, gateway))
    subnet: Config = {
        "name": called,
        "network": network,
        "cidr": str(cidr),
        "gateway": gateway or "none",
        "dhcp": True,
        "pools": pools,
        "dns_servers": list(cloud.dns_servers),
    }
    if cloud.address_scope:
        subnet["subnet_pool"] = pod.name
    return subnet


def _routed(cloud: model.Cloud, name: str) -> bool:
    return bool(cloud.external_network) and name in (model.DATA, model.MANAGEMENT)


def _pools(
    pod: model.Pod, cloud: model.Cloud, name: str, cidr: ipaddress.IPv4Network, gateway: str | None
) -> t.Iterator[str]:
    """Addresses for what has none by the POD: VMs, DHCP servers, routers."""
    taken = {
        int(ipaddress.IPv4Address(interface.address))
        for device in pod.devices
        for interface in device.interfaces
        if interface.address
    }
    given = (gateway, cloud.router_addresses.get(name), *cloud.dns_servers, *cloud.nfs_servers)
    taken |= {int(ipaddress.ip_address(text)) for text in given if text}
    last = int(cidr[-2])
    # Of a larger subnet, the last /24 is nobody's logical rack; a small one may have no room there.
    start = int(cidr[0]) + _FIRST_FREE if cidr.num_addresses <= _BLOCK else last + 3 - _BLOCK
    if start >= last:
        start = int(cidr[1])
    free = [number for number in range(start, last + 1) if number not in taken]
    run: list[int] = []
    for number in [*free, None]:
        if run and (number is None or number != run[-1] + 1):
            yield "%s-%s" % (ipaddress.IPv4Address(run[0]), ipaddress.IPv4Address(run[-1]))
            run = []
        if number is not None:
            run.append(number)


def _ports(pod: model.Pod, networks: dict[str, str], data: dict[str, str]) -> t.Iterator[Config]:
    """A port for every MAC of every IPU-Machine; nothing of OpenStack stands in front of them to filter."""
    for machine in pod.machines:
        for name, network in _MACHINE_NETWORKS.items():
            interface = machine.interface(name)
            if not interface.mac:
                continue
            own = data.get(machine.name) if network == model.DATA else None
            yield {
                "name": "%s-%s" % (machine.name, name),
                "network": own or networks[network],
                "mac": interface.mac,
                **({"addresses": [interface.address]} if interface.address else {}),
                "dns_name": dns_name(machine.name, name),
                "port_security": False,
            }


def dns_name(*parts: str) -> str:
    """The DNS label of a device, or of an interface of it, like ipum01-rnic."""
    return _NO_NAME.sub("-", "-".join(parts).lower())[:63].strip("-")


def _routers(pod: model.Pod, cloud: model.Cloud, own: t.Sequence[model.Tenant]) -> list[Config]:
    """The router of every data network, by SNAT to the outside, and the way to the management network.

    All tenants have that one in common, and whoever is in it gets to whatever its routers lead to. So with several
    data networks it has a router to itself: VMs have an interface there anyway.
    """
    if not cloud.external_network:
        return []
    routers: dict[str, list[Config]] = {}
    if pod.networks[model.DATA].subnet:
        routers[pod.name] = [{"subnet": subnet_name(pod, model.DATA), **_address(cloud, model.DATA)}]
        # Data networks of tenants have the same addresses, and so a router each.
        routers.update(
            (data_name(pod, tenant), [{"subnet": data_name(pod, tenant), **_address(cloud, model.DATA)}])
            for tenant in own
        )
    if pod.networks[model.MANAGEMENT].subnet:
        management = {"subnet": subnet_name(pod, model.MANAGEMENT), **_address(cloud, model.MANAGEMENT)}
        if pod.name in routers and not own:
            routers[pod.name].append(management)
        elif model.MANAGEMENT not in cloud.gateways:  # else the site's own router leads from there
            routers[subnet_name(pod, model.MANAGEMENT)] = [management]
    return [
        {"name": name, "interfaces": interfaces, "external_network": cloud.external_network, "snat": True}
        for name, interfaces in routers.items()
    ]


def _address(cloud: model.Cloud, name: str) -> Config:
    address = cloud.router_addresses.get(name)
    if address:
        return {"address": address}
    # A gateway that was told is a device of the site's.
    return {"address": "any"} if name in cloud.gateways else {}


def tenants(pod: model.Pod, cloud: model.Cloud) -> dict[str, Config]:
    """By project, and for every other one under ``EVERYBODY``, what is a tenant's.

    That is its ``data_network``, ``shares``, what it may use of the POD, and of a tenant with a data network of its
    own the ``allocation`` whose machines are in that.
    """
    return {EVERYBODY: _tenant(pod, cloud), **{each.project: _tenant(pod, cloud, each) for each in cloud.tenants}}


def _tenant(pod: model.Pod, cloud: model.Cloud, tenant: model.Tenant | None = None) -> Config:
    called = networks(pod)
    allocation = {}
    if tenant and tenant.vlan:
        called[model.DATA] = data_name(pod, tenant)
        allocation = {"allocation": next(each.id for each in pod.allocations if each.machines == tenant.machines)}
    seen = dict.fromkeys(each for name, each in called.items() if name in model.TENANT_NETWORKS)  # never BMC or GW
    groups = [group["name"] for group in security_groups(pod, cloud)]
    return {
        "data_network": called[model.DATA],
        "shares": [
            *({"kind": "network", "name": name} for name in seen),
            *({"kind": "security_group", "name": name} for name in groups if name.startswith("%s-poplar-" % pod.name)),
        ],
        **allocation,
    }


def _shares(pod: model.Pod, cloud: model.Cloud) -> list[Config]:
    return [
        {**share, "project": project}
        for project, given in tenants(pod, cloud).items()
        if project != EVERYBODY
        for share in given["shares"]
    ]


def _scope(pod: model.Pod, subnets: list[Config]) -> Config:
    prefixes = sorted({subnet["cidr"] for subnet in subnets})
    return {
        "address_scopes": [{"name": pod.name}],
        "subnet_pools": [{"name": pod.name, "prefixes": prefixes, "address_scope": pod.name}],
    }
