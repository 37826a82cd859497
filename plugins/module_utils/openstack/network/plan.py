# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan: the steps from the actual to the desired Neutron objects, and its checks. Pure, except for limits.

``plan_network`` runs all checks against the actual state and the limits of the cloud. They are in ``checks``,
``port_checks``, ``deletion`` and ``limits``. Tasks check their options alone, with ``checks.check_desired``, before
the first request.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...reconcile import Action, Family, Object, Step, plan
from . import checks
from .address_choice import choose_addresses
from .deletion import check_complete, check_remaining_ports
from .families import FAMILIES, INTERFACE, PORT, ROUTER, SHARE, Objects, absent_shares
from .limits import Limits, check_limits
from .parse import NetworkState
from .port_checks import check_ports
from .port_matching import match_ports


@dataclass(frozen=True)
class Deletions:
    """Selection of the actual objects that a plan deletes."""

    prune: t.Collection[str] = ()  # kinds, in the plural, of which all other owned objects are deleted
    routers: t.Collection[str] = ()  # routers of which all other interfaces are deleted
    shares: t.Collection[str] = ()  # keys of shares
    despite_doubt: bool = False  # whether to delete objects although others may be missing in the actual state


def deletions_of(config: Object, prune: t.Collection[str], despite_doubt: bool = False) -> Deletions:
    """Return the deletions of an option ``config``. Interfaces of a router are deleted when it lists interfaces."""
    routers = {item["name"] for item in config.get(ROUTER.plural) or () if item.get("interfaces") is not None}
    return Deletions(prune, routers, absent_shares(config), despite_doubt)


def plan_network(desired: Objects, state: NetworkState, owner: str, deletions: Deletions, limits: Limits) -> list[Step]:
    """Return the steps in the order of families, after all checks. The arguments stay unchanged.

    ``desired`` has passed ``checks.check_desired``. Limits are read only when a step depends on them. Raises UserError.
    """
    actual = state.objects
    if PORT.kind in desired:
        ports, actual_ports = match_ports(desired[PORT.kind], actual[PORT.kind], owner)
        ports = choose_addresses(ports, actual_ports, state)
        desired, actual = {**desired, PORT.kind: ports}, {**actual, PORT.kind: actual_ports}
    steps = _steps(desired, actual, owner, deletions)
    if not deletions.despite_doubt:
        # A named share is removed whatever else exists, and Neutron rejects that while it is used.
        check_complete([step for step in steps if step.family is not SHARE or step.key not in deletions.shares], state)
    checks.check_names(desired, state)
    checks.check_owners(steps, owner)
    checks.check_immutable(steps)
    checks.check_vlans(steps, state)
    checks.check_subnets(steps, state)
    check_ports(steps, desired, state)
    check_remaining_ports(steps, state)
    check_limits(steps, limits, state.project)
    return steps


def _steps(desired: Objects, actual: Objects, owner: str, deletions: Deletions) -> list[Step]:
    steps: list[Step] = []
    for family in FAMILIES:
        deleted = {step.key for step in steps if step.family is ROUTER and step.action is Action.DELETE}
        routers = deleted | set(deletions.routers)

        def prune(item: Object, family: Family = family, routers: set[str] = routers) -> bool:
            if family is INTERFACE:
                return item["router"] in routers
            return family.plural in deletions.prune and item.get("owner") == owner

        if family.kind in desired or (family is INTERFACE and deleted):
            absent = deletions.shares if family is SHARE else ()
            steps += plan(family, desired.get(family.kind, []), actual[family.kind], absent, prune=prune, recreate=True)
    return steps
