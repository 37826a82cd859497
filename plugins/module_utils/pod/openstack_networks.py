# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenStack networks of a POD: the option ``config`` of the module ``openstack_pod_network``. No I/O."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from . import model
from .allowed_traffic import security_groups

Config = dict[str, t.Any]

OTHERS = "*"  # tenants that are not in pod.yml

_MACHINE_NETWORKS = {"bmc": model.BMC, "gw": model.GW, "rnic": model.DATA}  # by interface
_BLOCK = 256  # addresses of a logical rack
_FIRST_FREE = 150  # devices of the POD have lower numbers in the rack by default
_NO_NAME = re.compile(r"[^a-z0-9-]+")


def network_config(pod: model.Pod, cloud: model.Cloud) -> Config:
    """Return networks, subnets, ports, security groups, routers and shares of one POD."""
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
    """Return the networks by kind of switch and VLAN. Each group is one Neutron network with several subnets."""
    groups: dict[tuple[str, int], list[str]] = {}
    for network in pod.networks.values():
        groups.setdefault((model.SWITCHES[network.name], network.vlan), []).append(network.name)
    return groups


def networks(pod: model.Pod) -> dict[str, str]:
    """Return the Neutron names of the networks of the POD."""
    return {name: network_name(pod, names) for names in _merged(pod).values() for name in names}


def network_name(pod: model.Pod, names: t.Sequence[str]) -> str:
    """Return the name of the Neutron network for these networks of the POD."""
    return "%s-%s" % (pod.name, "-".join(names))


def subnet_name(pod: model.Pod, name: str) -> str:
    """Return the name of the Neutron subnet for a network of the POD."""
    return "%s-%s" % (pod.name, name)


def data_name(pod: model.Pod, tenant: model.Tenant) -> str:
    """Return the name of the data network of a tenant, and of its subnet and router."""
    return "%s-%s-%s" % (pod.name, model.DATA, tenant.project)


def _network(pod: model.Pod, cloud: model.Cloud, title: str, name: str, vlan: int | None = None) -> Config:
    kind = model.SWITCHES[name]
    network = {
        "name": title,
        "vlan": vlan or pod.networks[name].vlan,
        "physical_network": cloud.physical_networks[kind],
        # IPU-over-Fabric is not filtered: virtual functions bypass all filters of the hypervisor.
        "port_security": name != model.DATA,
    }
    if kind == model.DATA:
        network["mtu"] = cloud.mtu
    if cloud.dns_domain:
        network["dns_domain"] = cloud.dns_domain
    return network


def _subnet(pod: model.Pod, cloud: model.Cloud, name: str, network: str, title: str) -> Config:
    cidr = ipaddress.IPv4Network(pod.networks[name].subnet or "")
    gateway = cloud.gateways.get(name) or (str(cidr[-2]) if _routed(cloud, name) else None)
    pools = list(cloud.pools.get(name) or _pools(pod, cloud, name, cidr, gateway))
    subnet: Config = {
        "name": title,
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
    """Yield ranges of free addresses for VMs, DHCP servers and routers."""
    taken = {
        int(ipaddress.IPv4Address(interface.address))
        for device in pod.devices
        for interface in device.interfaces
        if interface.address
    }
    given = (gateway, cloud.router_addresses.get(name), *cloud.dns_servers, *cloud.nfs_servers)
    taken |= {int(ipaddress.ip_address(text)) for text in given if text}
    last = int(cidr[-2])
    # The last /24 of a larger subnet belongs to no logical rack. A small subnet may have no such range.
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
    """Yield a port for every MAC of every IPU-Machine, without port security."""
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
    """Return the DNS label of a device or of one of its interfaces, such as ipum01-rnic."""
    return _NO_NAME.sub("-", "-".join(parts).lower())[:63].strip("-")


def _routers(pod: model.Pod, cloud: model.Cloud, own: t.Sequence[model.Tenant]) -> list[Config]:
    """Return the routers with SNAT: one per data network, which also connects the management network.

    All tenants share the management network and can reach all networks behind its routers. With several data
    networks it therefore has its own router; VMs have an interface in it anyway.
    """
    if not cloud.external_network:
        return []
    routers: dict[str, list[Config]] = {}
    if pod.networks[model.DATA].subnet:
        routers[pod.name] = [{"subnet": subnet_name(pod, model.DATA), **_address(cloud, model.DATA)}]
        # Data networks of tenants have the same addresses, so each needs its own router.
        routers.update(
            (data_name(pod, tenant), [{"subnet": data_name(pod, tenant), **_address(cloud, model.DATA)}])
            for tenant in own
        )
    if pod.networks[model.MANAGEMENT].subnet:
        management = {"subnet": subnet_name(pod, model.MANAGEMENT), **_address(cloud, model.MANAGEMENT)}
        if pod.name in routers and not own:
            routers[pod.name].append(management)
        elif model.MANAGEMENT not in cloud.gateways:  # otherwise the router of the site connects it
            routers[subnet_name(pod, model.MANAGEMENT)] = [management]
    return [
        {"name": name, "interfaces": interfaces, "external_network": cloud.external_network, "snat": True}
        for name, interfaces in routers.items()
    ]


def _address(cloud: model.Cloud, name: str) -> Config:
    address = cloud.router_addresses.get(name)
    if address:
        return {"address": address}
    # A given gateway is a device of the site.
    return {"address": "any"} if name in cloud.gateways else {}


def tenants(pod: model.Pod, cloud: model.Cloud) -> dict[str, Config]:
    """Return the settings of each tenant by project, and of all other projects under ``OTHERS``.

    They are ``data_network`` and ``shares`` (networks and security groups that it may use). A tenant with its own data
    network also has the ``allocation`` with the machines of that network.
    """
    return {OTHERS: _tenant(pod, cloud), **{each.project: _tenant(pod, cloud, each) for each in cloud.tenants}}


def _tenant(pod: model.Pod, cloud: model.Cloud, tenant: model.Tenant | None = None) -> Config:
    names = networks(pod)
    allocation = {}
    if tenant and tenant.vlan:
        names[model.DATA] = data_name(pod, tenant)
        allocation = {"allocation": next(each.id for each in pod.allocations if each.machines == tenant.machines)}
    seen = dict.fromkeys(each for name, each in names.items() if name in model.TENANT_NETWORKS)
    groups = [group["name"] for group in security_groups(pod, cloud)]
    return {
        "data_network": names[model.DATA],
        "shares": [
            *({"kind": "network", "name": name} for name in seen),
            *({"kind": "security_group", "name": name} for name in groups if name.startswith("%s-poplar-" % pod.name)),
        ],
        **allocation,
    }


def _shares(pod: model.Pod, cloud: model.Cloud) -> list[Config]:
    return [
        {**share, "project": project}
        for project, tenant in tenants(pod, cloud).items()
        if project != OTHERS
        for share in tenant["shares"]
    ]


def _scope(pod: model.Pod, subnets: list[Config]) -> Config:
    prefixes = sorted({subnet["cidr"] for subnet in subnets})
    return {
        "address_scopes": [{"name": pod.name}],
        "subnet_pools": [{"name": pod.name, "prefixes": prefixes, "address_scope": pod.name}],
    }
