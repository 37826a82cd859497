# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognition of networks and subnets that were renamed in Neutron. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ...reconcile import Family, Object
from ..common.tags import owner_of
from .families import NETWORK, SUBNET, Objects
from .parse import NetworkState, parse_state

Identity = tuple[t.Any, t.Any]


def match_renamed(desired: Objects, state: NetworkState, owner: str) -> tuple[Objects, NetworkState]:
    """Return both arguments with the desired name for each renamed object, and its actual name as ``former_name``.

    A network of the owner is recognized by its VLAN, and a subnet by its network and prefix. Otherwise the plan would
    create a second object, which Neutron rejects.
    """
    for family, wanted, found in (
        (NETWORK, _vlan, _raw_vlan),
        (SUBNET, lambda item: (item["network"], item["cidr"]), _raw_prefix),
    ):
        desired, state = _match(family, desired, state, owner, wanted, found)
    return desired, state


def _match(
    family: Family,
    desired: Objects,
    state: NetworkState,
    owner: str,
    identity: t.Callable[[Object], Identity],
    raw_identity: t.Callable[[NetworkState, Object], Identity],
) -> tuple[Objects, NetworkState]:
    items, raws = desired.get(family.kind, []), state.raw.get(family.kind, [])
    own = [raw for raw in raws if raw["project_id"] == state.project]
    names = {raw["name"] for raw in own}
    unused = {raw_identity(state, raw): raw for raw in own if owner_of(raw) == owner}
    for item in items:
        unused = {key: raw for key, raw in unused.items() if raw["name"] != item["name"]}
    renamed: dict[str, str] = {}  # id -> desired name
    for item in items:
        raw = None if item["name"] in names else unused.pop(identity(item), None)
        if raw is not None and None not in identity(item):
            renamed[raw["id"]] = item["name"]
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


def _vlan(item: Object) -> Identity:
    return item.get("physical_network"), item.get("vlan")


def _raw_vlan(state: NetworkState, raw: Object) -> Identity:
    return raw.get("provider:physical_network"), raw.get("provider:segmentation_id")


def _raw_prefix(state: NetworkState, raw: Object) -> Identity:
    return state.names(NETWORK).get(raw["network_id"]), raw["cidr"]
