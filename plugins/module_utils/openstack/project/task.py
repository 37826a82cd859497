# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_project: projects, users, roles, quotas and key pairs in one plan."""

from __future__ import annotations

from ...reconcile import Object, Step, plan
from ...runner import Task
from ..common.apply_plan import Plan, apply_plans
from ..common.options import OPENSTACK, Run
from .api import ProjectWriter, fetch
from .families import ABSENT, FAMILIES, OPTIONS, PROJECT, USER, desired


def _apply(run: Run) -> Object:
    params = run.params
    objects = desired(params)
    absent = params["state"] == "absent"
    if absent:
        objects = {family.kind: objects[family.kind] if family in (PROJECT, USER) else [] for family in FAMILIES}

    def make_plans() -> list[Plan]:
        state = fetch(run.transport, objects, params["domain"])
        steps: list[Step] = []
        for family in FAMILIES:
            removed = [item[family.key] for item in objects[family.kind] if absent or item.get(ABSENT)]
            items = [item for item in objects[family.kind] if not (absent or item.get(ABSENT))]
            steps += plan(family, items, state.objects[family.kind], absent=removed, recreate=True)
        return [(steps, ProjectWriter(run.transport, state))]

    return apply_plans(run, make_plans, FAMILIES)


OPENSTACK_POD_PROJECT = Task(
    OPENSTACK,
    {**OPTIONS, "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
    _apply,
    {"required_one_of": [("projects", "users")]},
)
