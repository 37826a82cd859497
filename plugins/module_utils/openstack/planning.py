# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what is asked for and what there is to what has to be done. Pure."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, Family, Object, Step, plan
from . import checks
from .leaving import check_left
from .port_checks import check_ports
from .reading import Seen
from .resources import FAMILIES, INTERFACE, PORT, ROUTER, SHARE
from .wanted import Objects, match_ports


def planned(
    objects: Objects,
    seen: Seen,
    owner: str,
    prune: t.Collection[str],
    exact: set[str],
    going: t.Collection[str] = (),
) -> list[Step]:
    """The steps, in the order of families.

    ``prune`` are kinds, in the plural; ``exact`` are the routers whose interfaces are all listed; ``going`` are the
    shares to take back. Raises SentenceError for what would go wrong.
    """
    if PORT.kind in objects:
        match_ports(objects[PORT.kind], seen, owner)
    steps = _steps(objects, seen, owner, prune, exact, going)
    checks.check_names(objects, seen)
    checks.check_owners(steps, owner)
    checks.check_immutable(steps)
    checks.check_vlans(steps, seen)
    checks.check_subnets(steps, seen)
    check_ports(steps, objects, seen)
    check_left(steps, seen)
    return steps


def exact_routers(config: Object) -> set[str]:
    """The routers whose interfaces an option ``config`` lists."""
    return {item["name"] for item in config.get(ROUTER.plural) or () if item.get("interfaces") is not None}


def _steps(
    objects: Objects,
    seen: Seen,
    owner: str,
    prune: t.Collection[str],
    exact: set[str],
    shares: t.Collection[str],
) -> list[Step]:
    steps: list[Step] = []
    for family in FAMILIES:
        going = {step.key for step in steps if step.family is ROUTER and step.action is Action.DELETE}

        def left(item: Object, family: Family = family, routers: set[str] = going | exact) -> bool:
            if family is INTERFACE:
                return item["router"] in routers
            return family.plural in prune and item.get("owner") == owner

        if family.kind in objects or (family is INTERFACE and going):
            asked = objects.get(family.kind, [])
            absent = shares if family is SHARE else ()
            steps += plan(family, asked, seen.objects.get(family.kind, []), absent, prune=left, recreate=True)
    return steps
