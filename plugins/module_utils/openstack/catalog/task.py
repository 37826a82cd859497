# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_catalog: images, flavors and volume types in one plan."""

from __future__ import annotations

import typing as t

from ...reconcile import Object, Step, plan
from ...runner import Task
from ..common.apply_plan import Plan, apply_plans
from ..common.options import OPENSTACK, Run
from .api import CatalogWriter, fetch
from .families import FAMILIES, OPTIONS, desired


def _apply(run: Run) -> Object:
    objects = desired(run.params)
    absent = run.params["state"] == "absent"
    families = [family for family in FAMILIES if family.kind in objects]

    def make_plans() -> list[Plan]:
        actual = fetch(run.transport, objects)
        steps: list[Step] = []
        for family in families:
            keys = [item[family.key] for item in objects[family.kind]] if absent else []
            items: t.Sequence[Object] = [] if absent else objects[family.kind]
            steps += plan(family, items, actual[family.kind], absent=keys, recreate=True)
        return [(steps, CatalogWriter(run.transport))]

    return apply_plans(run, make_plans, families)


OPENSTACK_POD_CATALOG = Task(
    OPENSTACK,
    {**OPTIONS, "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
    _apply,
    {"required_one_of": [tuple(OPTIONS)]},
)
