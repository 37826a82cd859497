# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be seen to go wrong before anything is written. Pure; the first mistake is raised as a SentenceError."""

from __future__ import annotations

import ipaddress
import typing as t

from ..reconcile import Action, Object, SentenceError, Step
from .reading import ROUTER_PORTS, Seen
from .resources import INTERFACE, NETWORK, PORT, ROUTER, SECURITY_GROUP, SHARE, SUBNET, SUBNET_POOL
from .wanted import Objects

Network: t.TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

_HELD = ("network", "mac", "addresses")  # of a port in use: Nova and its guest rely on them


def check_asked(objects: Objects) -> None:
    """Refuse what contradicts itself."""
    _check_cidrs(objects)
    ports = objects.get(PORT.kind, ())
    for name, what in (("mac", "MAC"), ("addresses", "address"), ("dns_name", "DNS name")):
        given: dict[tuple[str, str], str] = {}
        for port in ports:
            value = port.get(name) or ()
            for each in [value] if isinstance(value, str) else value:
                other = given.setdefault((port["network"], each), port["name"])
                if other != port["name"]:
                    raise SentenceError(
                        "%s %s is given to both port '%s' and port '%s' of network '%s': give each its own."
                        % (what, each, other, port["name"], port["network"])
                    )


def _check_cidrs(objects: Objects) -> None:
    """Subnets of one network, and those that one router joins, may not overlap."""
    subnets = {item["name"]: item for item in objects.get(SUBNET.kind, ())}
    groups: dict[str, list[Object]] = {}
    for item in subnets.values():
        groups.setdefault("network '%s'" % item["network"], []).append(item)
    for item in objects.get(INTERFACE.kind, ()):
        if item["subnet"] in subnets:
            groups.setdefault("router '%s'" % item["router"], []).append(subnets[item["subnet"]])
    for place, items in groups.items():
        for index, item in enumerate(items):
            for other in items[:index]:
                if _overlap(item["cidr"], other["cidr"]):
                    raise SentenceError(
                        "Subnets '%s' (%s) and '%s' (%s) of %s overlap: give one of them another cidr."
                        % (other["name"], other["cidr"], item["name"], item["cidr"], place)
                    )


def _overlap(one: str, other: str) -> bool:
    a, b = ipaddress.ip_network(one), ipaddress.ip_network(other)
    return a.version == b.version and a.overlaps(b)


def check_names(objects: Objects, seen: Seen) -> None:
    """Refuse names of what neither is there nor will be."""
    named = {
        family: {item["name"] for item in objects.get(family.kind, ())}
        for family in (NETWORK, SUBNET, SECURITY_GROUP, SUBNET_POOL)
    }

    def check(family: t.Any, name: str, who: str) -> None:
        if name not in named.get(family, ()) and seen.id(family, name) is None:
            raise SentenceError(
                "%s names %s '%s', which does not exist: add it to %s, or correct the name."
                % (who, family.kind.replace("_", " "), name, family.plural)
            )

    for subnet in objects.get(SUBNET.kind, ()):
        check(NETWORK, subnet["network"], "Subnet '%s'" % subnet["name"])
        if subnet.get("subnet_pool"):
            check(SUBNET_POOL, subnet["subnet_pool"], "Subnet '%s'" % subnet["name"])
    for port in objects.get(PORT.kind, ()):
        check(NETWORK, port["network"], "Port '%s'" % port["name"])
        for subnet in port.get("subnets") or ():
            check(SUBNET, subnet, "Port '%s'" % port["name"])
        for group in port.get("security_groups") or ():
            check(SECURITY_GROUP, group, "Port '%s'" % port["name"])
    for group in objects.get(SECURITY_GROUP.kind, ()):
        for rule in group.get("rules") or ():
            if rule.get("remote_group"):
                check(SECURITY_GROUP, rule["remote_group"], "A rule of security group '%s'" % group["name"])
    for router in objects.get(ROUTER.kind, ()):
        if router.get("external_network", "none") != "none":
            check(NETWORK, router["external_network"], "Router '%s'" % router["name"])
    for interface in objects.get(INTERFACE.kind, ()):
        check(SUBNET, interface["subnet"], "Router '%s'" % interface["router"])
    for share in objects.get(SHARE.kind, ()):
        family = {f.kind: f for f in (NETWORK, SECURITY_GROUP, SUBNET_POOL)}.get(share["kind"])
        if family:
            check(family, share["name"], "A share with project '%s'" % share["project"])


def check_owners(steps: t.Iterable[Step], owner: str) -> None:
    """Refuse to take over what belongs to another POD."""
    for step in steps:
        before = step.before or {}
        if step.wanted is not None and before.get("owner") not in (None, owner):
            raise SentenceError(
                "%s '%s' belongs to '%s': leave it out of config, since whatever it holds can name it all the same."
                % (step.family.kind.replace("_", " ").capitalize(), step.key, before["owner"])
            )


def check_immutable(steps: t.Iterable[Step]) -> None:
    """Refuse to make networks and subnets anew, with all that stands on them."""
    for step in steps:
        if step.action is Action.RECREATE and step.family not in (PORT, INTERFACE) and step.before and step.wanted:
            name = next(f.name for f in step.family.fields if f.immutable and f.differs(step.wanted, step.before))
            raise SentenceError(
                "%s '%s' has %s %s, which cannot be changed to %s: remove it first, with state absent or by hand."
                % (
                    step.family.kind.replace("_", " ").capitalize(),
                    step.key,
                    name,
                    step.before[name],
                    step.wanted[name],
                )
            )


def check_vlans(steps: t.Iterable[Step], seen: Seen) -> None:
    """Refuse a VLAN that another network has."""
    going = {step.before["uuid"] for step in steps if step.action is Action.DELETE and step.before}
    taken = {
        (raw.get("provider:physical_network"), raw.get("provider:segmentation_id")): raw
        for raw in seen.raw.get(NETWORK.kind, ())
        if raw["id"] not in going
    }
    for step in steps:
        item = step.wanted or {}
        if step.family is not NETWORK or step.action is not Action.CREATE or item.get("vlan") is None:
            continue
        other = taken.setdefault((item.get("physical_network"), item["vlan"]), {"name": step.key, "id": ""})
        if other["id"] or other["name"] != step.key:
            raise SentenceError(
                "VLAN %d of %s is taken by network '%s'%s: give network '%s' another one."
                % (
                    item["vlan"],
                    item.get("physical_network"),
                    other["name"],
                    " of another project" if other.get("project_id", seen.project) != seen.project else "",
                    step.key,
                )
            )


def check_ports(steps: t.Iterable[Step], objects: Objects, seen: Seen) -> None:
    """Refuse to disturb ports in use, and MACs and addresses that others have or that fit no subnet."""
    work = [step for step in steps if step.family is PORT]
    for step in work:
        _check_bound(step)
    moving = {step.before["uuid"] for step in work if step.before and step.action is not Action.NONE}
    names = seen.names(NETWORK)
    macs: dict[tuple[str, str], Object] = {}
    addresses: dict[tuple[str, str], Object] = {}
    for raw in seen.raw.get(PORT.kind, ()):
        if raw["id"] in moving:
            continue
        network = names.get(raw["network_id"], "")
        macs[network, raw["mac_address"]] = raw
        for fixed in raw["fixed_ips"]:
            addresses[network, fixed["ip_address"]] = raw
    subnets = _subnets(objects, seen)
    for step in work:
        item = step.wanted
        if item is None or step.action is Action.NONE:
            continue
        network = item["network"]
        for value, taken, what in (
            *((mac, macs, "MAC") for mac in filter(None, [item.get("mac")])),
            *((address, addresses, "Address") for address in item.get("addresses") or ()),
        ):
            other = taken.get((network, value))
            if other and other["id"] != (step.before or {}).get("uuid"):
                raise SentenceError(
                    "%s %s of port '%s' is that of %s on network '%s': remove that one, or correct this one."
                    % (what, value, step.key, _described(other), network)
                )
        for address in item.get("addresses") or ():
            if not any(ipaddress.ip_address(address) in cidr for cidr in subnets.get(network, ())):
                raise SentenceError(
                    "Address %s of port '%s' is in no subnet of network '%s': correct it, or add a subnet."
                    % (address, step.key, network)
                )


def _check_bound(step: Step) -> None:
    before = step.before or {}
    if not before.get("bound") or step.action is Action.NONE:
        return
    held = [f.name for f in step.family.fields if f.name in _HELD and step.wanted and f.differs(step.wanted, before)]
    if step.wanted is None or held or step.action is Action.RECREATE:
        raise SentenceError(
            "Port '%s' is in use by %s, so %s: detach it first."
            % (
                step.key,
                before["bound"],
                "its %s cannot be changed" % " and ".join(held) if held else "it cannot be removed",
            )
        )


def _described(raw: Object) -> str:
    if raw["device_owner"] in ROUTER_PORTS:
        return "a router"
    if raw["device_owner"] == "network:dhcp":
        return "a DHCP server"
    use = ", in use by %s," % raw["device_owner"] if raw["device_owner"] else ""
    return "port '%s'%s" % (raw["name"] or raw["id"], use)


def _subnets(objects: Objects, seen: Seen) -> dict[str, list[Network]]:
    """The subnets of every network, by its name, those that are asked for among them."""
    names = seen.names(NETWORK)
    found: dict[str, list[Network]] = {}
    for raw in seen.raw.get(SUBNET.kind, ()):
        found.setdefault(names.get(raw["network_id"], ""), []).append(ipaddress.ip_network(raw["cidr"]))
    for item in objects.get(SUBNET.kind, ()):
        found.setdefault(item["network"], []).append(ipaddress.ip_network(item["cidr"]))
    return found


def check_subnets(steps: t.Iterable[Step], seen: Seen) -> None:
    """Refuse a new subnet that overlaps one that the network has already."""
    going = {step.before["uuid"] for step in steps if step.action is Action.DELETE and step.before}
    names = seen.names(NETWORK)
    for step in steps:
        item = step.wanted
        if step.family is not SUBNET or step.action is not Action.CREATE or item is None:
            continue
        for raw in seen.raw.get(SUBNET.kind, ()):
            if raw["id"] in going or names.get(raw["network_id"]) != item["network"]:
                continue
            if _overlap(raw["cidr"], item["cidr"]):
                raise SentenceError(
                    "Subnet '%s' (%s) would overlap subnet '%s' (%s) of network '%s': give it another cidr, or remove "
                    "that one." % (step.key, item["cidr"], raw["name"] or raw["id"], raw["cidr"], item["network"])
                )


_QUOTAS = {  # what Neutron counts, and how a step counts
    "network": NETWORK.kind,
    "subnet": SUBNET.kind,
    "security_group": SECURITY_GROUP.kind,
    "router": ROUTER.kind,
    "rbac_policy": SHARE.kind,
    "subnetpool": SUBNET_POOL.kind,
}
_DEFAULT_RULES = 2  # of a new security group, until they are removed


def needed(steps: t.Iterable[Step]) -> dict[str, int]:
    """How many more of what Neutron counts there will be, at the most at a time."""
    count = dict.fromkeys([*_QUOTAS, "port", "security_group_rule"], 0)
    kinds = {kind: name for name, kind in _QUOTAS.items()}
    for step in steps:
        change = {Action.CREATE: 1, Action.DELETE: -1}.get(step.action, 0)
        if step.family.kind in kinds:
            count[kinds[step.family.kind]] += change
        if step.family in (PORT, INTERFACE):
            count["port"] += change
        if step.family is ROUTER and change == 1 and (step.wanted or {}).get("external_network", "none") != "none":
            count["port"] += 1
        if step.family is SECURITY_GROUP and step.wanted is not None and step.wanted.get("rules") is not None:
            before = len((step.before or {}).get("rules", ())) if step.before else 0
            count["security_group_rule"] += max(0, len(step.wanted["rules"]) - before)
            count["security_group_rule"] += _DEFAULT_RULES * (step.action is Action.CREATE)
    return count


def check_quotas(steps: t.Iterable[Step], quotas: t.Mapping[str, Object], project: str) -> None:
    """Refuse what is more than the project may have."""
    for name, more in needed(steps).items():
        quota = quotas.get(name)
        if not quota or quota["limit"] < 0 or more <= 0:
            continue
        used = quota["used"] + quota.get("reserved", 0)
        if used + more > quota["limit"]:
            raise SentenceError(
                "This takes %d more %s, and the project may have %d and has %d: raise its quota to %d at least "
                "(openstack quota set %s %d %s)."
                % (
                    more,
                    _PLURALS.get(name, name.replace("_", " ") + "s"),
                    quota["limit"],
                    used,
                    used + more,
                    _FLAGS[name],
                    used + more,
                    project,
                )
            )


_PLURALS = {"rbac_policy": "shares (RBAC policies)", "subnetpool": "subnet pools"}
_FLAGS = {
    "network": "--networks",
    "subnet": "--subnets",
    "port": "--ports",
    "router": "--routers",
    "security_group": "--secgroups",
    "security_group_rule": "--secgroup-rules",
    "rbac_policy": "--rbac-policies",
    "subnetpool": "--subnetpools",
}
