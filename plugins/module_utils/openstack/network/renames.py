# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognition of networks and subnets that were renamed in Neutron. No I/O."""

from __future__ import annotations

import typing as t
from collections import Counter
from dataclasses import replace

from ...reconcile import Family
from ..common.tags import owner_of
from .families import INTERFACE, NETWORK, SHARE, SUBNET, Objects
from .parse import NetworkState, parse_state

Identity = tuple[t.Any, ...]  # selects one network or subnet of the owner
_UNSHARED, _UNKNOWN = "", "unknown"  # in place of the id of a project: no share is desired, and a missing project


def match_renamed(desired: Objects, state: NetworkState, owner: str) -> tuple[Objects, NetworkState]:
    """Return both arguments with the desired name for each renamed object, and its actual name as ``former_name``.

    A network of the owner is recognized by its VLAN. A network without a VLAN, whose segment Neutron selects, is
    recognized by the name of a subnet, or by a router and a prefix. A prefix alone does not identify it, since the
    networks of several tenants have the same. So without a router, a prefix also needs a common project of shares. If
    no share is desired, it needs to be unique. A subnet is recognized by its network and prefix. Otherwise the plan
    would create a second object.
    """
    identities = _desired_networks(desired, state.projects)
    vlans = {(item.get("physical_network"), item["vlan"]) for item in desired.get(NETWORK.kind, ()) if item.get("vlan")}
    desired, state = _match(NETWORK, desired, state, owner, identities, _actual_networks(state, owner, vlans))
    return _match(SUBNET, desired, state, owner, _desired_subnets(desired), _actual_subnets(state))


def _match(
    family: Family,
    desired: Objects,
    state: NetworkState,
    owner: str,
    identities: t.Mapping[str, list[Identity]],
    ids: t.Mapping[Identity, list[str]],
) -> tuple[Objects, NetworkState]:
    """Match the objects of one family, given the identities of desired objects by name, and ids of actual objects."""
    items, raws = desired.get(family.kind, []), state.raw.get(family.kind, [])
    own = [raw for raw in raws if raw["project_id"] == state.project]
    names = {raw["name"] for raw in own}
    wanted = {item["name"] for item in items}
    unused = {raw["id"] for raw in own if owner_of(raw) == owner and raw["name"] not in wanted}
    renamed: dict[str, str] = {}  # id -> desired name
    missing = sorted(wanted - names)
    uses = Counter(identity for name in missing for identity in identities[name])
    for name in missing:
        found = (_unique(ids, identity, unused) for identity in identities[name] if uses[identity] == 1)
        id = next((id for id in found if id is not None), None)
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


def _unique(ids: t.Mapping[Identity, list[str]], identity: Identity, unused: t.Container[str]) -> str | None:
    """Return the id of the only unused object of an identity."""
    found = [id for id in ids.get(identity, ()) if id in unused]
    return found[0] if len(found) == 1 else None


def _desired_networks(desired: Objects, projects: t.Mapping[str, str]) -> dict[str, list[Identity]]:
    subnets = {item["name"]: item for item in desired.get(SUBNET.kind, ())}
    contents: dict[str, list[Identity]] = {}
    for name, subnet in subnets.items():
        contents.setdefault(subnet["network"], []).append((SUBNET.kind, name))
    with_router = {item["subnet"] for item in desired.get(INTERFACE.kind, ())}
    for item in desired.get(INTERFACE.kind, ()):
        if item["subnet"] in subnets:
            subnet = subnets[item["subnet"]]
            contents[subnet["network"]].append((INTERFACE.kind, item["router"], subnet["cidr"]))
    targets: dict[str, list[str]] = {}
    for item in desired.get(SHARE.kind, ()):
        if item["kind"] == NETWORK.kind:
            targets.setdefault(item["name"], []).append(projects.get(item["project"], _UNKNOWN))
    for name, subnet in subnets.items():
        if name not in with_router:
            shared = targets.get(subnet["network"], [_UNSHARED])
            contents[subnet["network"]] += [(SHARE.kind, subnet["cidr"], target) for target in shared]
    found = {}
    for item in desired.get(NETWORK.kind, ()):
        vlan = item.get("physical_network"), item.get("vlan")
        found[item["name"]] = contents.get(item["name"], []) if None in vlan else [vlan]
    return found


def _actual_networks(state: NetworkState, owner: str, vlans: t.Container[Identity]) -> dict[Identity, list[str]]:
    """Return the ids of the networks of each identity. ``vlans``: those of desired networks, for no other ones.

    Neutron may have selected a VLAN for a network that needs none.
    """
    networks = {raw["id"]: raw for raw in state.raw.get(NETWORK.kind, ())}
    own = [
        raw for raw in state.raw.get(SUBNET.kind, ()) if raw["project_id"] == state.project and owner_of(raw) == owner
    ]
    found: dict[Identity, list[str]] = {}
    for raw in networks.values():
        vlan = raw.get("provider:physical_network"), raw.get("provider:segmentation_id")
        found.setdefault(vlan, []).append(raw["id"])
    for raw in own:
        found.setdefault((SUBNET.kind, raw["name"]), []).append(raw["network_id"])
    subnets = {raw["id"]: raw for raw in state.raw.get(SUBNET.kind, ())}
    for item in state.objects[INTERFACE.kind]:
        if item["owner"] == owner and item["subnet_uuid"] in subnets:
            subnet = subnets[item["subnet_uuid"]]
            found.setdefault((INTERFACE.kind, item["router"], subnet["cidr"]), []).append(subnet["network_id"])
    with_router = {item["subnet_uuid"] for item in state.objects[INTERFACE.kind]}
    targets: dict[str, list[str]] = {}
    for policy in state.raw.get(SHARE.kind, ()):
        targets.setdefault(policy["object_id"], []).append(policy.get("target_project") or policy["target_tenant"])
    for raw in own:
        network = networks.get(raw["network_id"], {})
        vlan = network.get("provider:physical_network"), network.get("provider:segmentation_id")
        if raw["id"] not in with_router and vlan not in vlans:
            for target in [_UNSHARED, *targets.get(raw["network_id"], ())]:
                found.setdefault((SHARE.kind, raw["cidr"], target), []).append(raw["network_id"])
    return found


def _desired_subnets(desired: Objects) -> dict[str, list[Identity]]:
    return {item["name"]: [(item["network"], item["cidr"])] for item in desired.get(SUBNET.kind, ())}


def _actual_subnets(state: NetworkState) -> dict[Identity, list[str]]:
    networks = state.names(NETWORK)
    return {
        (networks[raw["network_id"]], raw["cidr"]): [raw["id"]]
        for raw in state.raw.get(SUBNET.kind, ())
        if raw["network_id"] in networks
    }
