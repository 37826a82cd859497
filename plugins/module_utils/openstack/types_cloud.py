# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What flavors and types of volumes and shares have alike: extra specs, and projects that may use them."""

from __future__ import annotations

from ..reconcile import Object, SentenceError, Step
from .attempts import Attempts
from .client import Cloud
from .looking import project_id


def find_access(cloud: Cloud, asked: list[Object], there: list[Object], service: str, path: str, key: str) -> None:
    """Put ids for names of projects, and find who may use what is not public: who makes it anew has to know."""
    by_name = {item["name"]: item for item in there}
    for item in asked:
        ids_of: dict[str, str] = {}
        for name in item.get("projects") or ():
            id = project_id(cloud, name)
            if id is None:
                raise SentenceError(
                    "There is no project '%s' for '%s': make it first, or correct the name." % (name, item["name"])
                )
            ids_of[name] = id
        if item.get("projects") is not None:
            item["project_ids"] = ids_of
        actual = by_name.get(item["name"])
        if actual is None:
            continue
        actual.update(projects=[], project_ids={})
        if not actual["public"]:
            names = {id: name for name, id in ids_of.items()}
            found = cloud.request(service, "GET", path % actual["uuid"])[key]
            ids = [raw.get("tenant_id") or raw["project_id"] for raw in found]
            actual["projects"] = [names.get(id, id) for id in ids]
            actual["project_ids"] = {names.get(id, id): id for id in ids}


def whole(step: Step) -> Object:
    """What is to be made, or made anew: what nobody asked about is kept, and so is who may use what is not public."""
    item, before = step.wanted or {}, step.before or {}
    found = {**before, **item}
    if found.get("public", True) and "projects" not in item:
        found.pop("projects", None)
    return found


def set_specs(work: Attempts, item: Object, there: Object, service: str, path: str) -> None:
    """Make the extra specs those that are asked for; ``path`` is where the service has them."""
    if "extra_specs" not in item:
        return
    asked, actual = item["extra_specs"], there["extra_specs"]
    for name in actual.keys() - asked.keys():
        work.remove("%s/%s" % (path, name), service)
    more = {name: value for name, value in asked.items() if actual.get(name) != value}
    if more:
        work.write("POST", path, service, json={"extra_specs": more})


def let_in(work: Attempts, item: Object, there: Object, service: str, path: str, action: str, target: str) -> None:
    """Let the projects in that are asked for, and no others; ``path`` is where the service takes actions."""
    if item.get("projects") is None:
        return
    actual = there.get("projects") or []
    for name in set(item["projects"]) - set(actual):
        work.write("POST", path, service, json={"add" + action: {target: item["project_ids"][name]}})
    for name in set(actual) - set(item["projects"]):
        work.write("POST", path, service, json={"remove" + action: {target: there["project_ids"][name]}})
