# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_bare_metal: nodes and their ports in one plan."""

from __future__ import annotations

from ...reconcile import Object
from ...runner import Task
from ..common.apply_plan import Plan, apply_plans
from ..common.options import OPENSTACK, Run
from .api import Ironic, NodeWriter, fetch
from .families import FAMILIES, NODE, OPTIONS, PORT, desired
from .plan import State, kept_members, member_warnings, plan_nodes, plan_ports, plan_removal


def _apply(run: Run) -> Object:
    params = run.params
    pod, absent = params["pod"], params["state"] == "absent"
    objects = desired(params)
    ironic = Ironic(run.transport, [] if absent else objects[NODE.kind])
    state = State()
    managed = {item["name"] for item in params["nodes"] or () if item["ports"] is not None}

    def make_plans() -> list[Plan]:
        nonlocal state
        state = fetch(ironic, objects, pod)
        if absent:
            names = None if params["nodes"] is None else [item["name"] for item in objects[NODE.kind]]
            steps = plan_removal(pod, names, state)
        else:
            always = params["update_password"] == "always"  # noqa: S105  no password
            steps = plan_nodes(pod, objects[NODE.kind], state, params["prune"], always)
            steps += plan_ports(pod, objects[PORT.kind], managed, state)
            found = member_warnings(objects[PORT.kind], managed, state)
            # Another plan of the same task has the same warnings.
            run.warnings.extend(message for message in found if message not in run.warnings)
        return [(steps, NodeWriter(ironic, state, pod, params["wait_timeout"]))]

    def details() -> Object:
        found = state if run.check_mode else fetch(ironic, objects, pod)
        nodes = sorted(found.nodes, key=lambda node: str(node["name"]))
        return {
            "details": {node["name"]: _details(node) for node in nodes},
            "kept_ports": kept_members(objects[PORT.kind], managed, found),
        }

    return apply_plans(run, make_plans, FAMILIES, None if absent else details)


def _details(node: Object) -> Object:
    return {
        "id": node["uuid"],
        **{name: node[name] for name in ("provision_state", "power_state", "maintenance")},
    }


OPENSTACK_POD_BARE_METAL = Task(
    OPENSTACK,
    {
        **OPTIONS,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "prune": {"type": "bool", "default": False},
        "update_password": {"type": "str", "choices": ["on_create", "always"], "default": "on_create", "no_log": False},
        "wait_timeout": {"type": "float", "default": 300.0},
    },
    _apply,
)
