# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Common parts of flavors, volume types and share types: extra specs, and projects with access."""

from __future__ import annotations

import typing as t

from ...reconcile import Object, Step, UserError
from .client import Cloud
from .lookup import project_id
from .writer import StepWriter


def resolve_access(
    cloud: Cloud, desired: list[Object], actual: list[Object], service: str, path: str, key: str
) -> None:
    """Add ``project_ids``, ids by name, to the objects of both lists, and ``projects`` to the actual ones.

    ``path`` and ``key`` are those of the access list of a type that is not public. Actual projects are read for
    all desired types, since a type that is recreated keeps its projects. Raises UserError.
    """
    actual_by_name = {item["name"]: item for item in actual}
    for item in desired:
        ids: dict[str, str] = {}
        for name in item.get("projects") or ():
            id = project_id(cloud, name)
            if id is None:
                raise UserError(
                    "Cannot give project '%s' access to '%s': it does not exist. Create it first, or correct the name."
                    % (name, item["name"])
                )
            ids[name] = id
        if item.get("projects") is not None:
            item["project_ids"] = ids
        existing = actual_by_name.get(item["name"])
        if existing is None:
            continue
        existing.update(projects=[], project_ids={})
        if not existing["public"]:
            names = {id: name for name, id in ids.items()}
            found = cloud.request(service, "GET", path % existing["uuid"])[key]
            allowed = [raw.get("tenant_id") or raw["project_id"] for raw in found]
            existing["projects"] = [names.get(id, id) for id in allowed]
            existing["project_ids"] = {names.get(id, id): id for id in allowed}


def recreated(step: Step) -> Object:
    """Return the object to create: desired values, and for a recreated object the actual ones of all other fields.

    A recreated type that is not public keeps its projects.
    """
    desired = step.desired or {}
    item = {**(step.before or {}), **desired}
    if item.get("public", True) and "projects" not in desired:
        item.pop("projects", None)
    return item


def set_specs(writer: StepWriter, desired: Object, actual: Object, service: str, path: str) -> None:
    """Write extra specs that differ and remove those that are not desired; ``path`` is their collection."""
    if "extra_specs" not in desired:
        return
    new, old = desired["extra_specs"], actual["extra_specs"]
    for name in old.keys() - new.keys():
        writer.remove("%s/%s" % (path, name), service)
    changes = {name: value for name, value in new.items() if old.get(name) != value}
    if changes:
        writer.write("POST", path, service, json={"extra_specs": changes})


def set_access(
    writer: StepWriter, desired: Object, actual: Object, service: str, path: str, action: str, target: str
) -> None:
    """Give access to the desired projects and revoke that of all others; ``path`` is the type's action endpoint."""
    if desired.get("projects") is None:
        return
    new, old = set(desired["projects"]), set(actual.get("projects") or [])
    for name in new - old:
        writer.write("POST", path, service, json={"add" + action: {target: desired["project_ids"][name]}})
    for name in old - new:
        writer.write("POST", path, service, json={"remove" + action: {target: actual["project_ids"][name]}})


def spec_text(value: t.Any) -> str:
    """Return the value of an extra spec or property as services store it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
