# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module openstack_pod_share does: types of shares, shares, and who may mount them, in one plan."""

from __future__ import annotations

from ..reconcile import Action, Object, Step, plan
from ..runner import Task, TaskError
from .carrying import carry_out, telling
from .client import Cloud
from .options import OPENSTACK, Run
from .shares import ACCESS_RULE, FAMILIES, FILE_SHARE, OPTIONS, SHARE_TYPE, wanted
from .shares_cloud import SERVICE, ShareWriter, There, exports, look

_NONE = "The catalogue of the cloud has no Manila, so there are no shares"


def _share(run: Run) -> Object:
    params, cloud = run.params, run.transport
    if not cloud.has(SERVICE):
        if params["without_manila"] == "skip":
            return {"changed": False, "skipped": True, "skip_reason": _NONE + "."}
        raise TaskError(_NONE + ": let it be deployed, or say without_manila: skip.")
    objects = wanted(params)
    absent = params["state"] == "absent"
    if absent:
        objects[ACCESS_RULE.kind] = []
    there = look(cloud, objects)
    steps = _going(objects, there) if absent else _steps(objects, there, params["recreate"])
    writer = ShareWriter(cloud, there, params["wait_timeout"])
    result = carry_out(run, steps, writer, FAMILIES)
    if not absent:
        with telling(result):
            result["details"] = _details(cloud, objects, there if run.check_mode else None)
    return result


def _going(objects: dict[str, list[Object]], there: There) -> list[Step]:
    steps: list[Step] = []
    for family in FAMILIES:
        keys = [item[family.key] for item in objects[family.kind]]
        steps += plan(family, [], there.objects[family.kind], absent=keys)
    return steps


def _steps(objects: dict[str, list[Object]], there: There, recreate: bool) -> list[Step]:
    """A share that could not be made is always made anew, and rules are: neither holds anything."""
    steps = plan(SHARE_TYPE, objects[SHARE_TYPE.kind], there.objects[SHARE_TYPE.kind], recreate=recreate)
    found = there.objects[FILE_SHARE.kind]
    broken = {item["name"] for item in found if not item["usable"]}
    shares: list[Step] = []
    for anew, of_them in ((recreate, False), (True, True)):
        asked = [item for item in objects[FILE_SHARE.kind] if (item["name"] in broken) is of_them]
        shares += plan(FILE_SHARE, asked, found, recreate=anew)
    going = {step.key for step in shares if step.action is Action.RECREATE}
    rules = [rule for rule in there.objects[ACCESS_RULE.kind] if rule["share"] not in going]
    asked = objects[ACCESS_RULE.kind]
    return [*steps, *shares, *plan(ACCESS_RULE, asked, rules, prune=lambda rule: True, recreate=True)]


def _details(cloud: Cloud, objects: dict[str, list[Object]], there: There | None) -> Object:
    """Where what was asked for is exported."""
    shares = (there or look(cloud, {**objects, SHARE_TYPE.kind: []})).objects[FILE_SHARE.kind]
    found = cloud.together(lambda share: exports(cloud, share["uuid"]), shares)
    return {
        share["name"]: {"id": share["uuid"], "status": share["status"], "exports": paths}
        for share, paths in zip(shares, found, strict=True)
    }


OPENSTACK_POD_SHARE = Task(
    OPENSTACK,
    {
        **OPTIONS,
        "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        "recreate": {"type": "bool", "default": False},
        "without_manila": {"type": "str", "choices": ["fail", "skip"], "default": "fail"},
        "wait_timeout": {"type": "float", "default": 300.0},
    },
    _share,
    {"required_one_of": [tuple(OPTIONS)]},
)
