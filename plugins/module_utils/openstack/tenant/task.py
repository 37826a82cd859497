# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_tenant: tags of PODs, granted roles and created V-IPU users in a project."""

from __future__ import annotations

from ...reconcile import Object, empty_result, plan
from ...runner import Task, TaskError
from ..common.apply_plan import Plan, apply_plans
from ..common.lookup import missing_project, project_id
from ..common.options import OPENSTACK, Run
from .api import TenantWriter, fetch, other_projects, others
from .families import FAMILIES, OPTIONS, POD_TAG, ROLE, VIPU_USER, desired


def _apply(run: Run) -> Object:
    params, cloud = run.params, run.transport
    absent, owner = params["state"] == "absent", params["pod"]
    project = project_id(cloud, params["project"])
    if project is None:
        if absent:
            empty = {family.plural: empty_result() for family in FAMILIES}
            projects = other_projects(cloud, None, owner)
            found: Object = {"other_pods": [], "other_vipu_users": [], "other_projects": projects}
            return {"changed": False, **empty, **found, "ids": {}}
        raise TaskError(missing_project(params["project"]))
    objects = desired(params)
    roles = [item["name"] for item in objects.get(ROLE.kind, ())]

    def make_plans() -> list[Plan]:
        state = fetch(cloud, project, owner, roles)
        steps = plan(POD_TAG, objects[POD_TAG.kind], state.pod_tags(owner), absent=[owner] if absent else ())
        if ROLE.kind in objects:
            granted = [state.role(name, state.user) for name in roles]
            steps += plan(ROLE, granted, state.roles, prune=lambda item: not item["own"])
        if VIPU_USER.kind in objects:
            steps += plan(VIPU_USER, objects[VIPU_USER.kind], state.vipu_users(owner), prune=lambda _user: True)
        return [(steps, TenantWriter(cloud, state, owner))]

    def details() -> Object:
        ids = {"projects": {params["project"]: project}}
        projects = other_projects(cloud, project, owner)
        return {**others(cloud, project, owner), "other_projects": projects, "ids": ids}

    return apply_plans(run, make_plans, FAMILIES, details)


OPENSTACK_POD_TENANT = Task(
    OPENSTACK,
    {**OPTIONS, "state": {"type": "str", "choices": ["present", "absent"], "default": "present"}},
    _apply,
)
