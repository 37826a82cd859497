# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module openstack_pod_share: share types, shares and access rules in one plan."""

from __future__ import annotations

from ...reconcile import Action, Object, Step, empty_result, plan
from ...runner import Task, TaskError
from ..common.apply_plan import Plan, apply_plans
from ..common.client import Cloud
from ..common.lookup import missing_project, project_id
from ..common.options import OPENSTACK, Run
from ..common.steps import check_writable
from .api import Project, ShareState, ShareWriter, fetch, fetch_exports
from .families import ACCESS_RULE, FAMILIES, FILE_SHARE, OPTIONS, SERVICE, SHARE_TYPE, desired
from .limits import check_share_quotas

_NO_MANILA = "Cannot find Manila in the service catalog"


def _apply(run: Run) -> Object:
    params, cloud = run.params, run.transport
    if not cloud.has_service(SERVICE):
        if params["without_manila"] == "skip":
            return {"changed": False, "skipped": True, "skip_reason": _NO_MANILA + "."}
        raise TaskError(_NO_MANILA + ". Deploy Manila, or set without_manila to skip.")
    objects = desired(params)
    absent = params["state"] == "absent"
    if absent:
        objects[ACCESS_RULE.kind] = []
    project = _project(run)
    if project is None:
        return {"changed": False, "ids": {}, **{family.plural: empty_result() for family in FAMILIES}}
    state = ShareState()

    def make_plans() -> list[Plan]:
        nonlocal state
        state = fetch(cloud, objects, project, params["recreate"])
        steps = _plan_removal(objects, state) if absent else _plan(objects, state, params["recreate"])
        if not run.check_mode and not project.own:
            check_writable(steps, project.name)
        check_share_quotas(steps, cloud, project.id, project.name)
        return [(steps, ShareWriter(cloud, state, params["wait_timeout"]))]

    def details() -> Object:
        shares = {**objects, SHARE_TYPE.kind: []}
        found = state if run.check_mode else fetch(cloud, shares, project, params["recreate"])
        return {"details": _details(cloud, found.objects[FILE_SHARE.kind])}

    return apply_plans(run, make_plans, FAMILIES, None if absent else details)


def _project(run: Run) -> Project | None:
    """Return the project of the shares; None when the shares of a missing project are to be removed."""
    name, own = run.params["project"], run.transport.authorize()
    id = project_id(run.transport, name) if name else own
    if id is None:
        if run.params["state"] == "present":
            raise TaskError(missing_project(name))
        return None
    return Project(id, name or id, id == own)


def _plan_removal(objects: dict[str, list[Object]], state: ShareState) -> list[Step]:
    steps: list[Step] = []
    for family in FAMILIES:
        keys = [item[family.key] for item in objects[family.kind]]
        steps += plan(family, [], state.objects[family.kind], absent=keys)
    return steps


def _plan(objects: dict[str, list[Object]], state: ShareState, recreate: bool) -> list[Step]:
    """Return the steps. Shares that are not usable, and failed access rules, are always recreated."""
    types = plan(SHARE_TYPE, objects[SHARE_TYPE.kind], state.objects[SHARE_TYPE.kind], recreate=recreate)
    actual = state.objects[FILE_SHARE.kind]
    failed = {item["name"] for item in actual if not item["usable"]}
    items = objects[FILE_SHARE.kind]
    shares = [
        *plan(FILE_SHARE, [item for item in items if item["name"] not in failed], actual, recreate=recreate),
        *plan(FILE_SHARE, [item for item in items if item["name"] in failed], actual, recreate=True),
    ]
    recreated = {step.key for step in shares if step.action is Action.RECREATE}  # and their rules with them
    rules = [rule for rule in state.objects[ACCESS_RULE.kind] if rule["share"] not in recreated]
    access = plan(ACCESS_RULE, objects[ACCESS_RULE.kind], rules, prune=lambda rule: True, recreate=True)
    return [*types, *shares, *access]


def _details(cloud: Cloud, shares: list[Object]) -> Object:
    exports = cloud.map(lambda share: fetch_exports(cloud, share["uuid"]), shares)
    return {
        share["name"]: {"id": share["uuid"], "status": share["status"], "exports": paths}
        for share, paths in zip(shares, exports, strict=True)
    }


OPENSTACK_POD_SHARE = Task(
    OPENSTACK,
    {
        **OPTIONS,
        "project": {"type": "str"},
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "recreate": {"type": "bool", "default": False},
        "without_manila": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
        "wait_timeout": {"type": "float", "default": 300.0},
    },
    _apply,
    {"required_one_of": [tuple(OPTIONS)]},
)
