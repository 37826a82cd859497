# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_tenant: tags of PODs and granted roles in a project."""

from __future__ import annotations

from ...reconcile import Object, empty_result, plan
from ...runner import Task, TaskError
from ..common.apply_plan import Plan, apply_plans
from ..common.lookup import missing_project, project_id
from ..common.options import OPENSTACK, Run
from .api import TenantWriter, fetch, other_pods
from .families import FAMILIES, OPTIONS, POD_TAG, ROLE, desired


def _apply(run: Run) -> Object:
    params, cloud = run.params, run.transport
    absent, owner = params["state"] == "absent", params["pod"]
    project = project_id(cloud, params["project"])
    if project is None:
        if absent:
            empty = {family.plural: empty_result() for family in FAMILIES}
            return {"changed": False, **empty, "other_pods": [], "ids": {}}
        raise TaskError(missing_project(params["project"]))
    objects = desired(params)
    roles = [item["name"] for item in objects.get(ROLE.kind, ())]

    def make_plans() -> list[Plan]:
        state = fetch(cloud, project, owner, roles)
        steps = plan(POD_TAG, objects[POD_TAG.kind], state.pod_tags(owner), absent=[owner] if absent else ())
        if ROLE.kind in objects:
            granted = [state.role(name, state.user) for name in roles]
            steps += plan(ROLE, granted, state.roles, prune=lambda item: not item["own"])
        return [(steps, TenantWriter(cloud, state, owner))]

    def details() -> Object:
        ids = {"projects": {params["project"]: project}}
        return {"other_pods": other_pods(cloud, project, owner), "ids": ids}

    return apply_plans(run, make_plans, FAMILIES, details)


OPENSTACK_POD_TENANT = Task(
    OPENSTACK,
    {**OPTIONS, "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
    _apply,
)
