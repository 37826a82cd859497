# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of desired objects and of a plan, before anything is written. Pure; each raises UserError."""

from __future__ import annotations

import typing as t

from ...reconcile import Action, Family, Object, Step, UserError
from .families import INTERFACE, NETWORK, PORT, ROUTER, SECURITY_GROUP, SHARE, SUBNET, SUBNET_POOL, Objects, overlap
from .parse import NetworkState
from .port_checks import network_ids


def check_desired(desired: Objects) -> None:
    """Reject subnets that overlap, and MACs, addresses and DNS names that two ports of a network have."""
    _check_cidrs(desired)
    ports = desired.get(PORT.kind, ())
    for name, title in (("mac", "MAC"), ("addresses", "address"), ("dns_name", "DNS name")):
        given: dict[tuple[str, str], str] = {}
        for port in ports:
            value = port.get(name) or ()
            for each in [value] if isinstance(value, str) else value:
                other = given.setdefault((port["network"], each), port["name"])
                if other != port["name"]:
                    raise UserError(
                        "Cannot use %s %s for port '%s' and port '%s' of network '%s'. Give each port its own."
                        % (title, each, other, port["name"], port["network"])
                    )


def _check_cidrs(desired: Objects) -> None:
    """Reject overlapping subnets of one network or of one router."""
    subnets = {item["name"]: item for item in desired.get(SUBNET.kind, ())}
    groups: dict[str, list[Object]] = {}
    for item in subnets.values():
        groups.setdefault("network '%s'" % item["network"], []).append(item)
    for item in desired.get(INTERFACE.kind, ()):
        if item["subnet"] in subnets:
            groups.setdefault("router '%s'" % item["router"], []).append(subnets[item["subnet"]])
    for place, items in groups.items():
        for index, item in enumerate(items):
            for other in items[:index]:
                if overlap(item["cidr"], other["cidr"]):
                    raise UserError(
                        "Cannot use subnets '%s' (%s) and '%s' (%s) of %s: they overlap. Change one cidr."
                        % (other["name"], other["cidr"], item["name"], item["cidr"], place)
                    )


def check_names(desired: Objects, state: NetworkState) -> None:
    """Reject references to objects that neither exist nor are desired."""
    defined = {
        family: {item["name"] for item in desired.get(family.kind, ())}
        for family in (NETWORK, SUBNET, SECURITY_GROUP, SUBNET_POOL)
    }

    def check(family: Family, name: str, user: str) -> None:
        if name not in defined.get(family, ()) and state.id(family, name) is None:
            raise UserError(
                "Cannot find %s '%s' of %s. Add it to %s, or correct the name."
                % (family.title, name, user, family.plural)
            )

    for subnet in desired.get(SUBNET.kind, ()):
        check(NETWORK, subnet["network"], "subnet '%s'" % subnet["name"])
        if subnet.get("subnet_pool"):
            check(SUBNET_POOL, subnet["subnet_pool"], "subnet '%s'" % subnet["name"])
    for port in desired.get(PORT.kind, ()):
        check(NETWORK, port["network"], "port '%s'" % port["name"])
        for subnet in port.get("subnets") or ():
            check(SUBNET, subnet, "port '%s'" % port["name"])
        for group in port.get("security_groups") or ():
            check(SECURITY_GROUP, group, "port '%s'" % port["name"])
    for group in desired.get(SECURITY_GROUP.kind, ()):
        for rule in group.get("rules") or ():
            if rule.get("remote_group"):
                check(SECURITY_GROUP, rule["remote_group"], "a rule of security group '%s'" % group["name"])
    for router in desired.get(ROUTER.kind, ()):
        if router.get("external_network", "none") != "none" and router["external_network"] not in defined[NETWORK]:
            _check_external(router, state)
    for interface in desired.get(INTERFACE.kind, ()):
        check(SUBNET, interface["subnet"], "router '%s'" % interface["router"])
    for share in desired.get(SHARE.kind, ()):
        family = {f.kind: f for f in (NETWORK, SECURITY_GROUP, SUBNET_POOL)}.get(share["kind"])
        if family:
            check(family, share["name"], "a share with project '%s'" % share["project"])


def _check_external(router: Object, state: NetworkState) -> None:
    """Reject a gateway in a network that does not exist or is not external."""
    name = router["external_network"]
    id = state.id(NETWORK, name)
    raw = next((raw for raw in state.raw[NETWORK.kind] if raw["id"] == id), None)
    if raw is None:
        cause, remedy = "does not exist", "Create it (openstack network create --external %s)" % name
    elif not raw.get("router:external", True):
        cause, remedy = "is not external", "Name an external network"
    else:
        return
    raise UserError(
        "Cannot use network '%s' for the gateway of router '%s': it %s. %s, or omit external_network in pod.yml."
        % (name, router["name"], cause, remedy)
    )


def check_owners(steps: t.Iterable[Step], owner: str) -> None:
    """Reject changes of objects that belong to another POD."""
    for step in steps:
        before = step.before or {}
        if step.desired is not None and before.get("owner") not in (None, owner):
            raise UserError(
                "Cannot change %s '%s': it belongs to '%s'. Remove it from config; other objects can still refer to it."
                % (step.family.title, step.key, before["owner"])
            )


def check_immutable(steps: t.Iterable[Step]) -> None:
    """Reject changes that would recreate a network or subnet with its dependent objects."""
    for step in steps:
        if step.action is Action.RECREATE and step.family not in (PORT, INTERFACE) and step.before and step.desired:
            name = next(f.name for f in step.family.fields if f.immutable and f.differs(step.desired, step.before))
            raise UserError(
                "Cannot change %s of %s '%s' from %s to %s: the field is immutable. Remove the object first, "
                "with state absent or manually."
                % (
                    name,
                    step.family.title,
                    step.key,
                    step.before[name],
                    step.desired[name],
                )
            )


def check_vlans(steps: t.Iterable[Step], state: NetworkState) -> None:
    """Reject a new network with the VLAN of another one."""
    deleted = {step.before["uuid"] for step in steps if step.action is Action.DELETE and step.before}
    taken = {
        (raw.get("provider:physical_network"), raw.get("provider:segmentation_id")): raw
        for raw in state.raw.get(NETWORK.kind, ())
        if raw["id"] not in deleted
    }
    for step in steps:
        item = step.desired or {}
        if step.family is not NETWORK or step.action is not Action.CREATE or item.get("vlan") is None:
            continue
        other = taken.setdefault((item.get("physical_network"), item["vlan"]), {"name": step.key, "id": ""})
        if other["id"] or other["name"] != step.key:
            raise UserError(
                "Cannot create network '%s': VLAN %d of %s belongs to network '%s'%s. Set another VLAN."
                % (
                    step.key,
                    item["vlan"],
                    item.get("physical_network"),
                    other["name"],
                    " of another project" if other.get("project_id", state.project) != state.project else "",
                )
            )


def check_subnets(steps: list[Step], state: NetworkState) -> None:
    """Reject a new subnet that overlaps an existing one of its network."""
    deleted = {step.before["uuid"] for step in steps if step.action is Action.DELETE and step.before}
    network_id = network_ids(steps, state)
    for step in steps:
        item = step.desired
        if step.family is not SUBNET or step.action is not Action.CREATE or item is None:
            continue
        for raw in state.raw.get(SUBNET.kind, ()):
            if raw["id"] in deleted or raw["network_id"] != network_id(item["network"]):
                continue
            if overlap(raw["cidr"], item["cidr"]):
                raise UserError(
                    "Cannot create subnet '%s' (%s): it overlaps subnet '%s' (%s) of network '%s'. Change its cidr, or "
                    "remove the other subnet."
                    % (step.key, item["cidr"], raw["name"] or raw["id"], raw["cidr"], item["network"])
                )
