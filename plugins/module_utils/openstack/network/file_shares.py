# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared file systems whose access rules allow the addresses of several tenants. No I/O.

A storage server identifies a tenant by its addresses in networks with a VLAN. Overlay networks end in the cloud, and
their addresses may be those of others too. Rules for users and certificates do not depend on addresses.
"""

from __future__ import annotations

import ipaddress
import typing as t

from ...reconcile import Object
from .families import NETWORK, SUBNET
from .parse import Raw
from .reach import ReachableNetworks, Tenant

Prefix: t.TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"


def find_share_leaks(
    tenant: Tenant,
    raw: Raw,
    reachable: ReachableNetworks,
    shares: t.Iterable[Object],
    projects: t.Mapping[str, str],
) -> list[Object]:
    """Return a finding for each access rule that allows the addresses of two tenants.

    These are rules of shares of the tenant for networks that it does not reach, and rules of other shares for networks
    of the tenant. ``shares`` have their access rules as ``rules``. ``raw`` has the subnets of all projects, and
    ``projects`` the known names of projects by id.
    """
    networks = {net["id"]: net for net in raw[NETWORK.kind]}
    own = [_prefix(subnet["cidr"]) for subnet in raw[SUBNET.kind] if subnet["network_id"] in reachable.all]
    provided = [
        (net, _prefix(subnet["cidr"]))
        for subnet in raw[SUBNET.kind]
        for net in [networks.get(subnet["network_id"], {})]
        if net.get("provider:physical_network") and net["project_id"] != tenant.id and not net["router:external"]
    ]
    provided.sort(key=lambda item: str(item[0]["name"]))
    foreign = [item for item in provided if item[0]["id"] not in reachable.all]
    private = [item for item in provided if item[0]["id"] in reachable.all and not tenant.has_common(item[0])]
    findings: list[Object] = []
    for share in sorted(shares, key=lambda share: (str(share["name"]), share["id"])):
        if share.get("share_network_id"):
            continue  # only hosts of that network reach its server
        is_own = share["project_id"] == tenant.id
        for rule in sorted(_address_rules(share)):
            allowed = _prefix(rule)
            parts = _without(allowed, own) if is_own else [allowed]
            found = [
                net for net, cidr in (foreign if is_own else private) if any(_overlap(part, cidr) for part in parts)
            ]
            if found:
                findings.append(_finding(tenant, share, rule, found[0], projects))
    return findings


def _finding(tenant: Tenant, share: Object, rule: str, net: Object, projects: t.Mapping[str, str]) -> Object:
    name, network, owner = share["name"] or share["id"], net["name"] or net["id"], share["project_id"]
    if owner == tenant.id:
        kind = "exposed"
        reason = (
            "Share '%s' of tenant '%s' has the access rule '%s', which allows addresses of network '%s'. "
            "Allow only the networks of the tenant." % (name, tenant.project, rule, network)
        )
    else:
        kind = "mountable"
        reason = (
            "Tenant '%s' can mount share '%s' of project '%s' from network '%s': its access rule '%s' allows these "
            "addresses. Remove the rule." % (tenant.project, name, projects.get(owner, owner), network, rule)
        )
    return {"project": tenant.project, "kind": kind, "network": network, "share": name, "reason": reason}


def _address_rules(share: Object) -> set[str]:
    """Return the valid prefixes and addresses in the rules of a share."""
    return {rule["access_to"] for rule in share["rules"] if rule["access_type"] == "ip" and _is_prefix(rule)}


def _is_prefix(rule: Object) -> bool:
    try:
        _prefix(rule["access_to"])
    except ValueError:
        return False
    return True


def _prefix(text: str) -> Prefix:
    return ipaddress.ip_network(text, strict=False)


def _overlap(one: Prefix, other: Prefix) -> bool:
    return one.version == other.version and one.overlaps(other)


def _without(prefix: Prefix, excluded: t.Iterable[Prefix]) -> list[Prefix]:
    """Return the parts of a prefix that are outside of others."""
    parts = [prefix]
    for other in excluded:
        parts = [rest for part in parts for rest in _difference(part, other)]
    return parts


def _difference(one: t.Any, other: t.Any) -> list[Prefix]:
    if not _overlap(one, other):
        return [one]
    return [] if one.subnet_of(other) else list(one.address_exclude(other))
