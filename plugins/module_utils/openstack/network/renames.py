# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognition of networks and subnets that were renamed in Neutron. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ...reconcile import Family
from ..common.tags import owner_of
from .families import INTERFACE, NETWORK, SUBNET, Objects
from .parse import NetworkState, parse_state

Identity = tuple[t.Any, ...]  # selects one network or subnet of the owner


def match_renamed(desired: Objects, state: NetworkState, owner: str) -> tuple[Objects, NetworkState]:
    """Return both arguments with the desired name for each renamed object, and its actual name as ``former_name``.

    A network of the owner is recognized by its VLAN. A network without a VLAN, whose segment Neutron selects, is
    recognized by the name of a subnet, or by a router and a prefix. A prefix alone does not identify it, since the
    networks of several tenants have the same. A subnet is recognized by its network and prefix. Otherwise the plan
    would create a second object.
    """
    desired, state = _match(NETWORK, desired, state, owner, _desired_networks(desired), _actual_networks(state, owner))
    return _match(SUBNET, desired, state, owner, _desired_subnets(desired), _actual_subnets(state))


def _match(
    family: Family,
    desired: Objects,
    state: NetworkState,
    owner: str,
    identities: t.Mapping[str, list[Identity]],
    ids: t.Mapping[Identity, str],
) -> tuple[Objects, NetworkState]:
    """Match the objects of one family, given the identities of desired objects by name, and ids of actual objects."""
    items, raws = desired.get(family.kind, []), state.raw.get(family.kind, [])
    own = [raw for raw in raws if raw["project_id"] == state.project]
    names = {raw["name"] for raw in own}
    wanted = {item["name"] for item in items}
    unused = {raw["id"] for raw in own if owner_of(raw) == owner and raw["name"] not in wanted}
    renamed: dict[str, str] = {}  # id -> desired name
    for name in sorted(wanted - names):
        found = (ids.get(identity) for identity in identities[name])
        id = next((id for id in found if id in unused), None)
        if id is not None:
            unused.remove(id)
            renamed[id] = name
    if not renamed:
        return desired, state
    former = {raw["id"]: raw["name"] for raw in own if raw["id"] in renamed}
    state = replace(
        state,
        raw={**state.raw, family.kind: [{**raw, "name": renamed.get(raw["id"], raw["name"])} for raw in raws]},
        former_names={**state.former_names, **former},
    )
    restored = set(renamed.values())
    items = [{**item, "former_name": ""} if item["name"] in restored else item for item in items]
    return {**desired, family.kind: items}, parse_state(state, owner)


def _desired_networks(desired: Objects) -> dict[str, list[Identity]]:
    subnets = {item["name"]: item for item in desired.get(SUBNET.kind, ())}
    contents: dict[str, list[Identity]] = {}
    for name, subnet in subnets.items():
        contents.setdefault(subnet["network"], []).append((SUBNET.kind, name))
    for item in desired.get(INTERFACE.kind, ()):
        if item["subnet"] in subnets:
            subnet = subnets[item["subnet"]]
            contents[subnet["network"]].append((INTERFACE.kind, item["router"], subnet["cidr"]))
    found = {}
    for item in desired.get(NETWORK.kind, ()):
        vlan = item.get("physical_network"), item.get("vlan")
        found[item["name"]] = contents.get(item["name"], []) if None in vlan else [vlan]
    return found


def _actual_networks(state: NetworkState, owner: str) -> dict[Identity, str]:
    subnets = {raw["id"]: raw for raw in state.raw.get(SUBNET.kind, ())}
    found: dict[Identity, str] = {
        (raw.get("provider:physical_network"), raw.get("provider:segmentation_id")): raw["id"]
        for raw in state.raw.get(NETWORK.kind, ())
    }
    for raw in subnets.values():
        if raw["project_id"] == state.project and owner_of(raw) == owner:
            found[SUBNET.kind, raw["name"]] = raw["network_id"]
    for item in state.objects[INTERFACE.kind]:
        if item["owner"] == owner and item["subnet_uuid"] in subnets:
            subnet = subnets[item["subnet_uuid"]]
            found[INTERFACE.kind, item["router"], subnet["cidr"]] = subnet["network_id"]
    return found


def _desired_subnets(desired: Objects) -> dict[str, list[Identity]]:
    return {item["name"]: [(item["network"], item["cidr"])] for item in desired.get(SUBNET.kind, ())}


def _actual_subnets(state: NetworkState) -> dict[Identity, str]:
    networks = state.names(NETWORK)
    return {
        (networks[raw["network_id"]], raw["cidr"]): raw["id"]
        for raw in state.raw.get(SUBNET.kind, ())
        if raw["network_id"] in networks
    }
