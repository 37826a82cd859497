# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing images (Glance), flavors (Nova) and volume types (Cinder)."""

from __future__ import annotations

from functools import partial

from ..reconcile import Action, ItemError, Object, Step
from .attempts import Attempts, of, place
from .catalog import FLAVOR, IMAGE, VOLUME_TYPE
from .client import Cloud, CloudError
from .images_cloud import change_image, images
from .types_cloud import find_access, let_in, set_specs, whole

_EXTRA_SPECS = {"microversion": "2.61"}  # since when Nova lists flavors with them


def look(cloud: Cloud, objects: dict[str, list[Object]]) -> dict[str, list[Object]]:
    """What there is of the kinds that are asked about. Raises SentenceError."""
    project = cloud.authorize()
    there: dict[str, list[Object]] = {}
    if IMAGE.kind in objects:
        names = [item["name"] for item in objects[IMAGE.kind]]
        there[IMAGE.kind] = images(cloud, names, project)
    if FLAVOR.kind in objects:
        found = cloud.request("compute", "GET", "/flavors/detail", params={"is_public": "None"}, **_EXTRA_SPECS)
        there[FLAVOR.kind] = [_flavor(raw) for raw in found["flavors"]]
    if VOLUME_TYPE.kind in objects:
        found = cloud.request("block_storage", "GET", "/types", params={"is_public": "None"})
        there[VOLUME_TYPE.kind] = [_volume_type(raw) for raw in found["volume_types"]]
    for family, service, path, key in (
        (FLAVOR, "compute", "/flavors/%s/os-flavor-access", "flavor_access"),
        (VOLUME_TYPE, "block_storage", "/types/%s/os-volume-type-access", "volume_type_access"),
    ):
        find_access(cloud, objects.get(family.kind, []), there.get(family.kind, []), service, path, key)
    return there


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


class CatalogWriter(Attempts):
    """Carries steps out."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud, "image")

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        image = partial(change_image, self)
        for family, change in ((IMAGE, image), (FLAVOR, self._flavor), (VOLUME_TYPE, self._volume_type)):
            for step in of(steps, family, tuple(Action)):  # images have megabytes, and the rest is little
                self.attempt(step, change)
        return self.errors

    # Flavors

    def _flavor(self, step: Step) -> None:
        item, before = step.wanted or {}, step.before or {}
        made = whole(step)
        missing = [name for name in ("vcpus", "ram") if name not in made]
        if missing:
            raise CloudError("a new flavor needs %s: say how much." % " and ".join(missing), 400)
        if step.action in (Action.DELETE, Action.RECREATE):
            self.remove("/flavors/%s" % before["uuid"], "compute")
            if step.action is Action.DELETE:
                return
            self.removed.add(place(step))
        if step.action is Action.CHANGE:
            id, there = before["uuid"], before
        else:
            item = made
            body = {
                "name": step.key,
                "vcpus": made["vcpus"],
                "ram": made["ram"],
                "disk": made.get("disk", 0),
                "OS-FLV-EXT-DATA:ephemeral": made.get("ephemeral", 0),
                "swap": made.get("swap", 0),
                "os-flavor-access:is_public": made.get("public", True),
            }
            id = self.write("POST", "/flavors", "compute", json={"flavor": body})["flavor"]["id"]
            there = {"extra_specs": {}, "projects": []}
        set_specs(self, item, there, "compute", "/flavors/%s/os-extra_specs" % id)
        let_in(self, item, there, "compute", "/flavors/%s/action" % id, "TenantAccess", "tenant")

    # Volume types

    def _volume_type(self, step: Step) -> None:
        item, before = step.wanted or {}, step.before or {}
        service = "block_storage"
        if step.action is Action.DELETE:
            self.remove("/types/%s" % before["uuid"], service)
            return
        body = {"description": item.get("description"), "is_public": item.get("public")}
        if step.action is Action.CREATE:
            made = {"name": step.key, "description": body["description"]}
            if item.get("public") is not None:
                made["os-volume-type-access:is_public"] = item["public"]
            id = self.write("POST", "/types", service, json={"volume_type": made})["volume_type"]["id"]
            there: Object = {"extra_specs": {}, "projects": []}
        else:
            id, there = before["uuid"], before
            changes = {name: value for name, value in body.items() if value is not None}
            own = {"is_public": "public"}
            if any(before.get(own.get(name, name)) != value for name, value in changes.items()):
                self.write("PUT", "/types/%s" % id, service, json={"volume_type": changes})
        set_specs(self, item, there, service, "/types/%s/extra_specs" % id)
        let_in(self, item, there, service, "/types/%s/action" % id, "ProjectAccess", "project")
