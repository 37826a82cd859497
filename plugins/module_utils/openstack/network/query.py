# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selection of the Neutron objects to read for a task. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...reconcile import Object
from .families import ADDRESS_SCOPE, NETWORK, PORT, ROUTER, SECURITY_GROUP, SHARE, SUBNET, SUBNET_POOL


@dataclass(frozen=True)
class Query:
    """Kinds of objects to read, and names of objects that the project may not own."""

    owner: str
    kinds: t.Collection[str]
    networks: t.Collection[str] = ()  # networks whose ports are read, besides those of the owner
    groups: t.Collection[str] = ()  # security groups that other projects may share
    projects: t.Collection[str] = ()  # names or ids of projects in shares
    project: str = ""  # id of the project to read; empty for that of the credentials
    all_projects: bool = False  # whether to read the names of all projects that shares refer to


def query_of(config: Object, owner: str, everything: bool = False) -> Query:
    """Return the query for an option ``config``; ``everything`` includes all kinds."""
    return Query(
        owner,
        _kinds(config, everything),
        _network_names(config),
        group_names(config),
        [item["project"] for item in config.get(SHARE.plural) or ()],
    )


def group_names(config: Object) -> set[str]:
    """Return the security groups of ports that ``config`` does not define."""
    defined = {item["name"] for item in config.get(SECURITY_GROUP.plural) or ()}
    used = {name for item in config.get(PORT.plural) or () for name in item.get("security_groups") or ()}
    return used - defined


def _network_names(config: Object) -> set[str]:
    names = {item["name"] for item in config.get(NETWORK.plural) or ()}
    names.update(item["network"] for plural in (SUBNET.plural, PORT.plural) for item in config.get(plural) or ())
    return names


def _kinds(config: Object, everything: bool) -> set[str]:
    kinds = {family.kind for family in (NETWORK, SUBNET, PORT, SECURITY_GROUP, ROUTER)}
    pools = config.get(SUBNET_POOL.plural) is not None or config.get(ADDRESS_SCOPE.plural) is not None
    if everything or pools or any(item.get("subnet_pool") for item in config.get(SUBNET.plural) or ()):
        kinds |= {SUBNET_POOL.kind, ADDRESS_SCOPE.kind}
    if everything or config.get(SHARE.plural) is not None:
        kinds |= {SHARE.kind}
    return kinds
