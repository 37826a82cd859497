# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the key ``openstack`` in pod.yml: OpenStack settings of the networks of a POD, and its tenants."""

from __future__ import annotations

import ipaddress
import re
import typing as t
from dataclasses import replace

from . import model, openstack_spec, spec
from .addresses import Plan, UniqueValues, unusable
from .cabling import bonded
from .clusters_and_partitions import ObjectLists
from .mistakes import ConsequenceError, LeftOut, Mistakes, PodError
from .source import Block

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def read(
    top: Block,
    plan: Plan,
    objects: ObjectLists,
    mistakes: Mistakes,
    left_out: LeftOut,
) -> model.Cloud | None:
    """Return the OpenStack settings, None when the key is missing. Record mistakes."""
    if top.get("openstack") is None:
        return None
    return _Reader(top, plan, objects, mistakes, left_out).cloud()


def tagged(cables: tuple[model.Cable, ...], cloud: model.Cloud | None, data: int) -> tuple[model.Cable, ...]:
    """Return the cables with the VLANs of tenants.

    On machines, the data VLAN of a tenant replaces that of the POD. Bonded ports of servers also carry the data and
    storage VLANs of all tenants.
    """
    tenant_vlans = (
        {machine.name: tenant.vlan for tenant in cloud.tenants for machine in tenant.machines} if cloud else {}
    )
    own = [tenant for tenant in cloud.tenants if tenant.vlan] if cloud else []
    additional = (
        *(tenant.vlan for tenant in own if tenant.vlan),
        *(tenant.storage.vlan for tenant in own if tenant.storage),
    )

    def vlans(cable: model.Cable) -> tuple[int, ...]:
        if data not in cable.vlans:
            return cable.vlans
        vlan = tenant_vlans.get(cable.device)
        if vlan:
            return tuple(vlan if each == data else each for each in cable.vlans)
        return (*cable.vlans, *additional) if bonded(cable.connector) else cable.vlans

    return tuple(replace(cable, vlans=vlans(cable)) for cable in cables) if additional else cables


class _Reader:
    """Reader of the key of one POD."""

    def __init__(
        self,
        top: Block,
        plan: Plan,
        objects: ObjectLists,
        mistakes: Mistakes,
        left_out: LeftOut,
    ) -> None:
        self.block = spec.POD.child(top, "openstack", mistakes)
        self.plan = plan
        self.networks = plan.networks
        self.objects = objects
        self.mistakes = mistakes
        self.left_out = left_out

    def cloud(self) -> model.Cloud:
        """Return the settings, without those with mistakes, which are recorded."""
        physical = openstack_spec.OPENSTACK.child(self.block, "physical_networks", self.mistakes)
        settings = openstack_spec.OPENSTACK.child(self.block, "networks", self.mistakes)
        details = {
            name: openstack_spec.CLOUD_NETWORKS.child(settings, name, self.mistakes, "network '%s' of openstack" % name)
            for name in self.networks
            if settings.get(name)
        }
        domain = None
        with self.mistakes.collect():
            domain = self._domain()
        gateways = self._inside(details, "gateway")
        return model.Cloud(
            physical_networks={kind: physical[kind] for kind in (model.DATA, model.MANAGEMENT)},
            mtu=self.block["mtu"],
            dns_domain=domain,
            dns_servers=self._addresses(self.block, "dns_servers"),
            management_servers=self._optional_addresses(self.block, "management_servers"),
            nfs_servers=self._optional_addresses(self.block, "nfs_servers"),
            external_network=self.block.get("external_network"),
            address_scope=self.block["address_scope"],
            gateways=gateways,
            router_addresses=self._inside(details, "router_address"),
            pools=self._pools(details, gateways),
            control_subnet=self._control_subnet(),
            tenants=self._tenants(),
        )

    def _domain(self) -> str | None:
        """Return the DNS domain with the trailing dot that Neutron requires. Raises PodError."""
        domain = self.block.get("dns_domain")
        if not domain:
            return None
        labels = domain.rstrip(".").split(".")
        if not all(_LABEL.fullmatch(label) for label in labels) or len(domain) > 253:
            raise self.block.error("invalid DNS domain '%s': use the form pod64.example" % domain, "dns_domain")
        return ".".join(labels) + "."

    def _addresses(self, block: Block, key: str) -> tuple[str, ...]:
        found = []
        for text in block.get(key) or ():
            try:
                found.append(str(ipaddress.ip_address(text)))
            except ValueError:
                self.mistakes.add(block.error("'%s' of %s is not an address: correct it" % (text, key), key))
        return tuple(found)

    def _optional_addresses(self, block: Block, key: str) -> tuple[str, ...] | None:
        """Return the addresses under ``key``, None when the key is missing. An empty list means no addresses."""
        return None if block.get(key) is None else self._addresses(block, key)

    def _inside(self, details: dict[str, Block], key: str) -> dict[str, str]:
        """Return the addresses under ``key`` by network, each inside the subnet of its network."""
        found = {}
        for name, block in details.items():
            if block.get(key):
                with self.mistakes.collect():
                    address = self._address(block, key, name, block[key])
                    for device in self.plan.devices(address, address):
                        message = "%s of network '%s' is the address of a device, %s: change one of them"
                        raise block.error(message % (key, name, device), key)
                    found[name] = address
        return found

    def _address(self, block: Block, key: str, network: str, text: str) -> str:
        """Return an address in a network. Raises PodError."""
        subnet = self.networks[network].subnet
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            message = "%s '%s' of network '%s' is not an address: correct it"
            raise block.error(message % (key, text, network), key) from None
        if subnet is None or address not in ipaddress.ip_network(subnet):
            message = "%s %s is outside the subnet of network '%s' (%s): correct one of them"
            error = block.error(message % (key, address, network, subnet or "it has none"), key)
            raise error.unless(network in self.left_out.subnets)
        return str(address)

    def _pools(self, details: dict[str, Block], gateways: dict[str, str]) -> dict[str, tuple[str, ...]]:
        pools: dict[str, tuple[str, ...]] = {}
        for name, block in details.items():
            if block.get("pools") is None:
                continue
            found = []
            for text in block["pools"]:
                with self.mistakes.collect():
                    ends = [self._address(block, "pools", name, end.strip()) for end in str(text).split("-")]
                    if len(ends) != 2 or ipaddress.ip_address(ends[0]) > ipaddress.ip_address(ends[1]):  # type: ignore[operator]
                        message = "invalid pool '%s' of network '%s': use the form 10.1.5.150-10.1.5.250"
                        raise block.error(message % (text, name), "pools")
                    self._check_pool(block, name, ends, gateways.get(name))
                    found.append("-".join(ends))
            pools[name] = tuple(found)
        return pools

    def _check_pool(self, block: Block, network: str, ends: list[str], gateway: str | None) -> None:
        """Reject a pool with addresses in use, which Neutron would assign to VMs. Raises PodError."""
        used = self.plan.devices(*ends)
        low, high = map(ipaddress.ip_address, ends)
        if gateway and low <= ipaddress.ip_address(gateway) <= high:  # type: ignore[operator]
            used.append("%s (the gateway)" % gateway)
        if used:
            count = "1 address" if len(used) == 1 else "%d addresses" % len(used)
            message = "pool %s of network '%s' contains %s in use, such as %s: use a range without devices"
            raise block.error(message % ("-".join(ends), network, count, used[0]), "pools")

    def _control_subnet(self) -> str | None:
        if self.block["control_network"] == model.MANAGEMENT or not self.block["control_subnet"]:
            return None
        with self.mistakes.collect():
            return self._separate_subnet(self.block, "control_subnet", "the control networks")
        return None

    def _separate_subnet(self, block: Block, key: str, owner: str) -> str:
        """Return the subnet under ``key``, which must not overlap with the networks of the POD. Raises PodError."""
        try:
            subnet = ipaddress.IPv4Network(block[key])
        except ValueError:
            message = "invalid subnet '%s' of %s: use the form 10.1.6.0/24"
            raise block.error(message % (block[key], owner), key) from None
        kind = unusable(subnet)
        if kind:
            message = (
                "subnet %s of %s has %s addresses, which hosts cannot have: use a private subnet such as 10.1.6.0/24"
            )
            raise block.error(message % (subnet, owner, kind), key)
        others = [
            "%s of network '%s'" % (network.subnet, network.name)
            for network in self.networks.values()
            if network.subnet and subnet.overlaps(ipaddress.IPv4Network(network.subnet))
        ]
        if others:
            message = "subnet %s of %s and %s overlap: set '%s' to a separate one"
            raise block.error(message % (subnet, owner, " and ".join(others), key), key)
        return str(subnet)

    def _tenants(self) -> tuple[model.Tenant, ...]:
        projects, vlans = UniqueValues("tenant"), UniqueValues("VLAN")
        for network in {network.vlan: network for network in self.networks.values()}.values():
            if network.name != model.DATA and network.name not in self.left_out.vlans:
                vlans.take(str(network.vlan), "network '%s'" % network.name, self.block.error("", "networks"))
        machines = UniqueValues("machine")
        tenants: list[model.Tenant] = []
        for block in openstack_spec.OPENSTACK.children(self.block, "tenants", self.mistakes):
            with self.mistakes.collect():
                if "project" not in block.invalid:
                    projects.take(block["project"], None, block.error("", "project"))
            with self.mistakes.collect():
                tenant = self._tenant(block)
                self._compare_tenant(block, tenant, tenants, vlans, machines)
                tenants.append(tenant)
        return tuple(tenants)

    def _compare_tenant(
        self,
        block: Block,
        tenant: model.Tenant,
        earlier: t.Sequence[model.Tenant],
        vlans: UniqueValues,
        machines: UniqueValues,
    ) -> None:
        """Record the VLANs, subnets and machines that a tenant shares with an earlier one."""
        owner = "tenant '%s'" % tenant.project
        with self.mistakes.collect():
            # IPU-over-Fabric is not encrypted, so tenants must not share a data VLAN.
            vlans.take(str(tenant.vlan or self.networks[model.DATA].vlan), owner, block.error("", "vlan"))
        if tenant.storage:
            place = block.error("", "storage")
            with self.mistakes.collect():
                vlans.take(str(tenant.storage.vlan), "storage of %s" % owner, place)
            with self.mistakes.collect():
                self._compare_storage(tenant.storage, earlier, place)
        with self.mistakes.collect():
            for machine in tenant.machines:
                machines.take(machine.name, owner, block.error("", "allocation"))

    def _tenant(self, block: Block) -> model.Tenant:
        """Return a tenant. Raises PodError."""
        project, vlan, name = block["project"], block.get("vlan"), block.get("allocation")
        storage = self._storage(block, project)
        if not {"project", "vlan", "allocation"}.isdisjoint(block.invalid):
            raise ConsequenceError(block.file, block.line, "the tenant is incomplete")
        if (vlan is None) != (name is None):
            message = "tenant '%s': a separate data network needs both 'vlan' and 'allocation': set both, or omit both"
            raise block.error(message % project)
        if vlan is None or name is None:
            if block.get("storage"):
                message = (
                    "tenant '%s' uses the storage network of the POD: set 'vlan' and 'allocation', or omit 'storage'"
                )
                raise block.error(message % project, "storage")
            return model.Tenant(project)
        if vlan == self.networks[model.DATA].vlan:
            message = "tenant '%s': VLAN %d belongs to network 'data': omit it and 'allocation', or use another one"
            raise block.error(message % (project, vlan), "vlan").unless(model.DATA in self.left_out.vlans)
        machines: tuple[model.Machine, ...] = ()
        with self.mistakes.collect():
            machines = self._machines(block, name, project)
        return model.Tenant(project, vlan, machines, storage)

    def _machines(self, block: Block, allocation: str, project: str) -> tuple[model.Machine, ...]:
        """Return the machines of the allocation of a tenant. Raises PodError."""
        machines = self.objects.allocation(block, allocation, subject="tenant '%s'" % project).machines
        if not machines:
            message = "tenant '%s': the controller chooses the machines of allocation '%s': list its 'machines'"
            raise block.error(message % (project, allocation), "allocation").unless(self.objects.uncertain(allocation))
        return machines

    def _storage(self, block: Block, project: str) -> model.TenantStorage | None:
        if not block.get("storage"):
            return None
        storage = openstack_spec.TENANT.child(
            block, "storage", self.mistakes, "storage network of tenant '%s'" % project
        )
        nfs_servers = self._optional_addresses(storage, "nfs_servers")
        if storage.invalid:
            return None
        subnet = None
        with self.mistakes.collect():
            subnet = self._separate_subnet(storage, "subnet", "the storage network of tenant '%s'" % project)
        return model.TenantStorage(storage["vlan"], subnet, nfs_servers) if subnet else None

    @staticmethod
    def _compare_storage(storage: model.TenantStorage, tenants: t.Sequence[model.Tenant], place: PodError) -> None:
        """Reject a subnet that overlaps with the storage of an earlier tenant.

        The access rules of shares identify a tenant by its addresses.
        """
        for other in tenants:
            if other.storage and ipaddress.ip_network(storage.subnet).overlaps(
                ipaddress.ip_network(other.storage.subnet)
            ):
                message = "storage subnet %s overlaps with %s of tenant '%s': use a separate one"
                raise PodError(place.file, place.line, message % (storage.subnet, other.storage.subnet, other.project))
