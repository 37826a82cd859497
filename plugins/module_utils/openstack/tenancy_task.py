# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_project does: projects, users, roles, quotas and key pairs in one plan."""

from __future__ import annotations

from ..reconcile import Object, Step, plan
from ..runner import Task
from .carrying import carry_out
from .options import OPENSTACK, Run
from .tenancy import FAMILIES, GOING, OPTIONS, PROJECT, USER, wanted
from .tenancy_cloud import TenancyWriter, look


def _tenancy(run: Run) -> Object:
    params = run.params
    objects = wanted(params)
    absent = params["state"] == "absent"
    if absent:
        objects = {family.kind: objects[family.kind] if family in (PROJECT, USER) else [] for family in FAMILIES}
    there = look(run.transport, objects, params["domain"])
    steps: list[Step] = []
    for family in FAMILIES:
        going = [item[family.key] for item in objects[family.kind] if absent or item.get(GOING)]
        asked = [item for item in objects[family.kind] if not (absent or item.get(GOING))]
        steps += plan(family, asked, there.objects[family.kind], absent=going, recreate=True)
    return carry_out(run, steps, TenancyWriter(run.transport, there), FAMILIES)


OPENSTACK_POD_PROJECT = Task(
    OPENSTACK,
    {**OPTIONS, "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
    _tenancy,
    {"required_one_of": [("projects", "users")]},
)
