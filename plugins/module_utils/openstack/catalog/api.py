# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""APIs of the catalog: reads and writes of images (Glance), flavors (Nova) and volume types (Cinder)."""

from __future__ import annotations

from functools import partial

from ...reconcile import Action, ItemError, Object, Step
from ..common.client import Cloud, CloudError
from ..common.steps import REMOVALS, select, step_id
from ..common.type_access import recreated, resolve_access, set_access, set_specs
from ..common.writer import StepWriter
from .families import FLAVOR, IMAGE, VOLUME_TYPE
from .images import fetch_images, write_image

_EXTRA_SPECS = {"microversion": "2.61"}  # lists flavors with extra specs


def fetch(cloud: Cloud, objects: dict[str, list[Object]]) -> dict[str, list[Object]]:
    """Read the actual objects by kind, and add the ids of projects to ``objects``. Raises UserError."""
    project = cloud.authorize()
    actual: dict[str, list[Object]] = {}
    if IMAGE.kind in objects:
        names = [item["name"] for item in objects[IMAGE.kind]]
        actual[IMAGE.kind] = fetch_images(cloud, names, project)
    if FLAVOR.kind in objects:
        found = cloud.request("compute", "GET", "/flavors/detail", params={"is_public": "None"}, **_EXTRA_SPECS)
        actual[FLAVOR.kind] = [_flavor(raw) for raw in found["flavors"]]
    if VOLUME_TYPE.kind in objects:
        found = cloud.request("block_storage", "GET", "/types", params={"is_public": "None"})
        actual[VOLUME_TYPE.kind] = [_volume_type(raw) for raw in found["volume_types"]]
    for family, service, path, key in (
        (FLAVOR, "compute", "/flavors/%s/os-flavor-access", "flavor_access"),
        (VOLUME_TYPE, "block_storage", "/types/%s/os-volume-type-access", "volume_type_access"),
    ):
        resolve_access(cloud, objects.get(family.kind, []), actual.get(family.kind, []), service, path, key)
    return actual


def _flavor(raw: Object) -> Object:
    return {
        "uuid": raw["id"],
        "name": raw["original_name"] if "original_name" in raw else raw["name"],
        "vcpus": raw["vcpus"],
        "ram": raw["ram"],
        "disk": raw["disk"],
        "ephemeral": raw["OS-FLV-EXT-DATA:ephemeral"],
        "swap": raw["swap"] or 0,
        "public": raw["os-flavor-access:is_public"],
        "extra_specs": raw["extra_specs"],
    }


def _volume_type(raw: Object) -> Object:
    return {
        "uuid": raw["id"],
        "name": raw["name"],
        "description": raw["description"] or "",
        "public": raw["is_public"],
        "extra_specs": raw["extra_specs"],
    }


class CatalogWriter(StepWriter):
    """Writer of images, flavors and volume types."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud, "image")

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write the steps and return the errors."""
        image = partial(write_image, self)
        for family, work in ((IMAGE, image), (FLAVOR, self._flavor), (VOLUME_TYPE, self._volume_type)):
            for step in select(steps, family, tuple(Action)):  # one at a time, since images are large
                self.attempt(step, work)
        return self.errors

    def _flavor(self, step: Step) -> None:
        item, before = step.desired or {}, step.before or {}
        new = recreated(step)
        missing = [name for name in ("vcpus", "ram") if name not in new]
        if missing:
            raise CloudError("a new flavor needs %s. Set the missing options." % " and ".join(missing), 400)
        if step.action in REMOVALS:
            self.remove("/flavors/%s" % before["uuid"], "compute")
            if step.action is Action.DELETE:
                return
            self.removed.add(step_id(step))
        if step.action is Action.CHANGE:
            id, actual = before["uuid"], before
        else:
            item = new
            body = {
                "name": step.key,
                "vcpus": new["vcpus"],
                "ram": new["ram"],
                "disk": new.get("disk", 0),
                "OS-FLV-EXT-DATA:ephemeral": new.get("ephemeral", 0),
                "swap": new.get("swap", 0),
                "os-flavor-access:is_public": new.get("public", True),
            }
            id = self.write("POST", "/flavors", "compute", json={"flavor": body})["flavor"]["id"]
            self.created_ids[step_id(step)] = id
            actual = {"extra_specs": {}, "projects": []}
        set_specs(self, item, actual, "compute", "/flavors/%s/os-extra_specs" % id)
        set_access(self, item, actual, "compute", "/flavors/%s/action" % id, "TenantAccess", "tenant")

    def _volume_type(self, step: Step) -> None:
        item, before = step.desired or {}, step.before or {}
        service = "block_storage"
        if step.action is Action.DELETE:
            self.remove("/types/%s" % before["uuid"], service)
            return
        body = {"description": item.get("description"), "is_public": item.get("public")}
        if step.action is Action.CREATE:
            new = {"name": step.key, "description": body["description"]}
            if item.get("public") is not None:
                new["os-volume-type-access:is_public"] = item["public"]
            id = self.write("POST", "/types", service, json={"volume_type": new})["volume_type"]["id"]
            self.created_ids[step_id(step)] = id
            actual: Object = {"extra_specs": {}, "projects": []}
        else:
            id, actual = before["uuid"], before
            changes = {name: value for name, value in body.items() if value is not None}
            fields = {"is_public": "public"}
            if any(before.get(fields.get(name, name)) != value for name, value in changes.items()):
                self.write("PUT", "/types/%s" % id, service, json={"volume_type": changes})
        set_specs(self, item, actual, service, "/types/%s/extra_specs" % id)
        set_access(self, item, actual, service, "/types/%s/action" % id, "ProjectAccess", "project")
