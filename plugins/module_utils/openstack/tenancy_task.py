# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_project does: projects, users, roles, quotas and key pairs in one plan."""

from __future__ import annotations

from ..reconcile import Object, Step, converge, nothing_done, plan
from ..runner import Task, TaskError
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
    writer = TenancyWriter(run.transport, there)
    report = converge(steps, writer, run.check_mode, run.diff)
    report.changed = report.changed or writer.wrote
    result = {**{family.plural: nothing_done() for family in FAMILIES}, **report.result()}
    if result.pop("failed", False):
        raise TaskError(result.pop("msg"), **result)
    return result


OPENSTACK_POD_PROJECT = Task(
    OPENSTACK,
    {**OPTIONS, "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
    _tenancy,
    {"required_one_of": [("projects", "users")]},
)
