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
_MANAGEMENT_MTU = 1500  # bytes, on the 1GbE switches, whose devices have this default
_FIRST_FREE = 150  # devices of the POD have lower numbers in the rack by default
_NO_NAME = re.compile(r"[^a-z0-9-]+")


def network_config(pod: model.Pod, cloud: model.Cloud) -> Config:
    """Return networks, subnets, ports, security groups, routers and shares of one POD."""
    merged = _merged(pod)
    own = [tenant for tenant in cloud.tenants if tenant.vlan]
    data = {machine.name: data_name(pod, tenant) for tenant in own for machine in tenant.machines}
    subnets = [
        _subnet(pod, cloud, pod.networks[name], network_name(pod, names), subnet_name(pod, name))
        for names in merged.values()
        for name in names
        if pod.networks[name].subnet
    ]
    additional = [*_tenant_networks(pod, own), *_control_networks(pod, cloud, own)]
    subnets += [_subnet(pod, cloud, network, title, title) for title, network in additional if network.subnet]
    config: Config = {
        "networks": [
            *(_network(pod, cloud, network_name(pod, names), names[0]) for names in merged.values()),
            *(_network(pod, cloud, title, network.name, network.vlan) for title, network in additional),
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
    return tenant_name(pod, model.DATA, tenant)


def tenant_name(pod: model.Pod, name: str, tenant: model.Tenant | None = None) -> str:
    """Return the name of a network of a tenant, and of its subnet.

    Without ``tenant``, it is for the tenant of the data network of the POD.
    """
    return "-".join((pod.name, name, *((tenant.project,) if tenant else ())))


def _tenant_networks(pod: model.Pod, own: t.Sequence[model.Tenant]) -> t.Iterator[tuple[str, model.Network]]:
    """Yield the data and storage networks of tenants by name in Neutron."""
    for tenant in own:
        # All data networks have the same addresses.
        data = pod.networks[model.DATA]
        yield data_name(pod, tenant), model.Network(model.DATA, tenant.vlan or data.vlan, data.subnet)
        if tenant.storage:
            storage = tenant.storage
            yield tenant_name(pod, model.STORAGE, tenant), model.Network(model.STORAGE, storage.vlan, storage.subnet)


def _control_networks(
    pod: model.Pod, cloud: model.Cloud, own: t.Sequence[model.Tenant]
) -> t.Iterator[tuple[str, model.Network]]:
    """Yield the control network of each data network by name in Neutron, which selects its VLAN or tunnel."""
    if cloud.control_subnet:
        for tenant in (None, *own):
            yield tenant_name(pod, model.CONTROL, tenant), model.Network(model.CONTROL, 0, cloud.control_subnet)


def _network(pod: model.Pod, cloud: model.Cloud, title: str, name: str, vlan: int | None = None) -> Config:
    if name == model.CONTROL:
        return {"name": title, "port_security": True, **_domain(cloud)}
    kind = model.SWITCHES[name]
    network = {
        "name": title,
        "vlan": vlan or pod.networks[name].vlan,
        "physical_network": cloud.physical_networks[kind],
        # IPU-over-Fabric is not filtered: virtual functions bypass all filters of the hypervisor.
        "port_security": name != model.DATA,
    }
    # Without it, Neutron uses the MTU of the data network for all networks.
    network["mtu"] = cloud.mtu if kind == model.DATA else _MANAGEMENT_MTU
    return {**network, **_domain(cloud)}


def _domain(cloud: model.Cloud) -> Config:
    return {"dns_domain": cloud.dns_domain} if cloud.dns_domain else {}


def _subnet(pod: model.Pod, cloud: model.Cloud, plan: model.Network, network: str, title: str) -> Config:
    name, cidr = plan.name, ipaddress.IPv4Network(plan.subnet or "")
    # Settings of the storage network of the POD do not apply to those of tenants.
    given = plan.subnet == pod.networks[name].subnet if name in pod.networks else False
    gateway = (cloud.gateways.get(name) if given else None) or (str(cidr[-2]) if _routed(cloud, name) else None)
    pools = list((cloud.pools.get(name) if given else None) or _pools(pod, cloud, name, cidr, gateway))
    subnet: Config = {
        "name": title,
        "network": network,
        "cidr": str(cidr),
        "gateway": gateway or "none",
        "dhcp": True,
        "pools": pools,
        "dns_servers": _name_servers(pod, cloud, plan, gateway),
    }
    if cloud.address_scope and name != model.CONTROL:  # control networks of several tenants have the same addresses
        subnet["subnet_pool"] = pod.name
    return subnet


def _name_servers(pod: model.Pod, cloud: model.Cloud, plan: model.Network, gateway: str | None) -> list[str]:
    """Return the DNS servers that hosts of a network reach. Without any, Neutron's DHCP servers answer DNS requests."""
    if plan.name in (model.BMC, model.GW):
        return list(cloud.dns_servers)
    others = [ipaddress.ip_network(each.subnet) for each in pod.networks.values() if each.subnet]

    def reachable(server: str) -> bool:
        address = ipaddress.ip_address(server)
        # No router of Neutron leads to the other networks of the POD.
        outside = bool(gateway) and not any(address in other for other in others)
        return address in ipaddress.ip_network(plan.subnet or "") or outside

    return [server for server in cloud.dns_servers if reachable(server)]


def _routed(cloud: model.Cloud, name: str) -> bool:
    return bool(cloud.external_network) and name in (model.DATA, model.MANAGEMENT, model.CONTROL)


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
    storage = [server for tenant in cloud.tenants if tenant.storage for server in tenant.storage.nfs_servers or ()]
    given = (gateway, cloud.router_addresses.get(name), *cloud.dns_servers, *(cloud.nfs_servers or ()), *storage)
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
    """Return the routers with SNAT: one per data network, which also connects the control network of the tenant.

    Without control networks, all tenants share the management network and can reach all networks behind its routers.
    So the router of a data network connects the management network only if no other tenant has a data network.
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
    if cloud.control_subnet:
        for tenant in (None, *own):
            interface = {"subnet": tenant_name(pod, model.CONTROL, tenant)}
            routers.setdefault(data_name(pod, tenant) if tenant else pod.name, []).append(interface)
    if pod.networks[model.MANAGEMENT].subnet:
        management = {"subnet": subnet_name(pod, model.MANAGEMENT), **_address(cloud, model.MANAGEMENT)}
        if pod.name in routers and not own and not cloud.control_subnet:
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

    They are ``data_network``, ``control_network``, ``shares`` (networks and security groups that it may use) and
    ``common_networks`` (those of the networks that other tenants may use too). With an address plan for storage, they
    include ``storage`` with ``network``, ``subnet`` (addresses) and ``security_group``. A tenant with its own data
    network also has the ``allocation`` with the machines of that network.
    """
    return {OTHERS: _tenant(pod, cloud), **{each.project: _tenant(pod, cloud, each) for each in cloud.tenants}}


def _tenant(pod: model.Pod, cloud: model.Cloud, tenant: model.Tenant | None = None) -> Config:
    names = networks(pod)
    own = tenant if tenant and tenant.vlan else None
    data, storage = names[model.DATA], names[model.STORAGE]
    subnet, suffix = pod.networks[model.STORAGE].subnet, ""
    settings: Config = {}
    if own:
        data, suffix = data_name(pod, own), "-%s" % own.project
        storage, subnet = (tenant_name(pod, model.STORAGE, own), own.storage.subnet) if own.storage else ("", None)
        settings["allocation"] = next(each.id for each in pod.allocations if each.machines == own.machines)
    common = [] if cloud.control_subnet else [names[model.MANAGEMENT]]
    control = common[0] if common else tenant_name(pod, model.CONTROL, own)
    groups = ["%s-poplar-management" % pod.name]
    if storage:
        groups.append("%s-poplar-storage%s" % (pod.name, suffix))
    if subnet:
        settings["storage"] = {"network": storage, "subnet": subnet, "security_group": groups[-1]}
    return {
        "data_network": data,
        "control_network": control,
        "common_networks": common,
        "shares": [
            *({"kind": "network", "name": name} for name in (control, data, storage) if name),
            *({"kind": "security_group", "name": name} for name in groups),
        ],
        **settings,
    }


def _shares(pod: model.Pod, cloud: model.Cloud) -> list[Config]:
    return [
        {**share, "project": project}
        for project, tenant in tenants(pod, cloud).items()
        if project != OTHERS
        for share in tenant["shares"]
    ]


def _scope(pod: model.Pod, subnets: list[Config]) -> Config:
    prefixes = sorted({subnet["cidr"] for subnet in subnets if "subnet_pool" in subnet})
    return {
        "address_scopes": [{"name": pod.name}],
        "subnet_pools": [{"name": pod.name, "prefixes": prefixes, "address_scope": pod.name}],
    }
