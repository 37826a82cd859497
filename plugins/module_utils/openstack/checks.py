# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be seen to go wrong before anything is written. Pure; the first mistake is raised as a SentenceError."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, Object, SentenceError, Step
from .port_checks import network_ids
from .reading import Seen
from .resources import INTERFACE, NETWORK, PORT, ROUTER, SECURITY_GROUP, SHARE, SUBNET, SUBNET_POOL, overlap
from .wanted import Objects


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
                if overlap(item["cidr"], other["cidr"]):
                    raise SentenceError(
                        "Subnets '%s' (%s) and '%s' (%s) of %s overlap: give one of them another cidr."
                        % (other["name"], other["cidr"], item["name"], item["cidr"], place)
                    )


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


def check_subnets(steps: list[Step], seen: Seen) -> None:
    """Refuse a new subnet that overlaps one that the network has already."""
    going = {step.before["uuid"] for step in steps if step.action is Action.DELETE and step.before}
    network_id = network_ids(steps, seen)
    for step in steps:
        item = step.wanted
        if step.family is not SUBNET or step.action is not Action.CREATE or item is None:
            continue
        for raw in seen.raw.get(SUBNET.kind, ()):
            if raw["id"] in going or raw["network_id"] != network_id(item["network"]):
                continue
            if overlap(raw["cidr"], item["cidr"]):
                raise SentenceError(
                    "Subnet '%s' (%s) would overlap subnet '%s' (%s) of network '%s': give it another cidr, or remove "
                    "that one." % (step.key, item["cidr"], raw["name"] or raw["id"], raw["cidr"], item["network"])
                )
