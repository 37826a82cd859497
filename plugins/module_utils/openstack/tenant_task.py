# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_tenant does: it notes what a project has, and lends roles there."""

from __future__ import annotations

from ..reconcile import Object, nothing_done, plan
from ..runner import Task, TaskError
from .carrying import carry_out
from .looking import project_id
from .options import OPENSTACK, Run
from .resources import TAG
from .tenant_cloud import NOTE, ROLE, TenantWriter, look

_FAMILIES = (NOTE, ROLE)


def _tenant(run: Run) -> Object:
    params, cloud = run.params, run.transport
    absent, owner = params["state"] == "absent", params["pod"]
    project = project_id(cloud, params["project"])
    if project is None:
        if absent:
            return {"changed": False, **{family.plural: nothing_done() for family in _FAMILIES}, "others": []}
        raise TaskError("There is no project '%s': make it first, or correct the name." % params["project"])
    names = [] if absent else params["roles"]
    there = look(cloud, project, owner, names or ())
    noted = [{"name": owner}] if TAG + owner in there.tags else []
    steps = plan(NOTE, [] if absent else [{"name": owner}], noted, absent=[owner] if absent else ())
    if names is not None:
        asked = [there.role(name, there.user) for name in names]
        steps += plan(ROLE, asked, there.roles, prune=lambda item: not item["own"])
    writer = TenantWriter(cloud, there, owner)
    result = carry_out(run, steps, writer, _FAMILIES)
    if not run.check_mode:
        writer.look_again()
    return {**result, "others": there.others(owner)}


OPENSTACK_POD_TENANT = Task(
    OPENSTACK,
    {
        "pod": {"type": "str", "required": True},
        "project": {"type": "str", "required": True},
        "roles": {"type": "list", "elements": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    },
    _tenant,
)
