# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing images (Glance), flavors (Nova) and volume types (Cinder)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..reconcile import Action, ItemError, Object, SentenceError, Step
from .attempts import Attempts, of, place
from .catalog import CHECKSUM, FLAVOR, IMAGE, VOLUME_TYPE
from .client import Cloud, CloudError
from .looking import project_id

_EXTRA_SPECS = {"microversion": "2.61"}  # since when Nova lists flavors with them
_BLOCK = 1 << 20
# What Glance says of every image, beside the properties that it was given.
_OF_EVERY_IMAGE = frozenset(
    (
        "checksum",
        "container_format",
        "created_at",
        "direct_url",
        "disk_format",
        "file",
        "id",
        "locations",
        "min_disk",
        "min_ram",
        "name",
        "os_hash_algo",
        "os_hash_value",
        "os_hidden",
        "owner",
        "protected",
        "schema",
        "self",
        "size",
        "status",
        "stores",
        "tags",
        "updated_at",
        "virtual_size",
        "visibility",
    )
)


def look(cloud: Cloud, objects: dict[str, list[Object]]) -> dict[str, list[Object]]:
    """What there is of the kinds that are asked about. Raises SentenceError."""
    project = cloud.authorize()
    there: dict[str, list[Object]] = {}
    if IMAGE.kind in objects:
        names = [item["name"] for item in objects[IMAGE.kind]]
        there[IMAGE.kind] = _images(cloud, names, project)
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
        _access(cloud, objects.get(family.kind, []), there.get(family.kind, []), service, path, key)
    return there


def _images(cloud: Cloud, names: list[str], project: str) -> list[Object]:
    def find(name: str) -> list[Object]:
        found = cloud.request("image", "GET", "/images", params={"name": name, "limit": 100})["images"]
        return [raw for raw in found if raw["owner"] == project and raw["status"] == "active"]

    images = []
    for name, found in zip(names, cloud.together(find, names), strict=True):
        if len(found) > 1:
            raise SentenceError(
                "There are %d images named '%s' (%s): rename all but one, or remove them."
                % (len(found), name, ", ".join(sorted(raw["id"] for raw in found)))
            )
        images += [_image(raw) for raw in found]
    return images


def _image(raw: Object) -> Object:
    own = {
        key: value
        for key, value in raw.items()
        if key not in _OF_EVERY_IMAGE and key != CHECKSUM and not key.startswith(("owner_specified.", "os_glance_"))
    }
    names = ("name", "disk_format", "container_format", "visibility", "min_disk", "min_ram")
    image = {"uuid": raw["id"], "properties": own, **{name: raw[name] for name in names}}
    # Glance's own digest tells for sha512; for others, what was verified before.
    checksum = raw.get(CHECKSUM)
    digest = "%s:%s" % (raw.get("os_hash_algo"), raw.get("os_hash_value"))
    image["checksum"] = checksum if checksum and not checksum.startswith("sha512:") else digest
    return image


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


def _access(cloud: Cloud, asked: list[Object], there: list[Object], service: str, path: str, key: str) -> None:
    """Put ids for names of projects, and find who may use what is not public."""
    by_name = {item["name"]: item for item in there}
    for item in asked:
        if item.get("projects") is None:
            continue
        item["project_ids"] = {}
        for name in item["projects"]:
            id = project_id(cloud, name)
            if id is None:
                raise SentenceError(
                    "There is no project '%s' for '%s': make it first, or correct the name." % (name, item["name"])
                )
            item["project_ids"][name] = id
        actual = by_name.get(item["name"])
        if actual is None:
            continue
        actual["projects"] = []
        if not actual["public"]:
            names = {id: name for name, id in item["project_ids"].items()}
            found = cloud.request(service, "GET", path % actual["uuid"])[key]
            ids = [raw.get("tenant_id") or raw["project_id"] for raw in found]
            actual["projects"] = [names.get(id, id) for id in ids]
            actual["project_ids"] = {names.get(id, id): id for id in ids}


class CatalogWriter(Attempts):
    """Carries steps out."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud, "image")

    def __call__(self, steps: list[Step]) -> list[ItemError]:
        """Write; the errors are those of steps that were not carried out."""
        for family, change in ((IMAGE, self._image), (FLAVOR, self._flavor), (VOLUME_TYPE, self._volume_type)):
            for step in of(steps, family, tuple(Action)):  # images have megabytes, and the rest is little
                self.attempt(step, change)
        return self.errors

    # Images

    def _image(self, step: Step) -> None:
        item, before = step.wanted or {}, step.before or {}
        if step.action is Action.DELETE:
            self.remove("/images/%s" % before["uuid"])
        elif step.action is Action.CHANGE:
            patch = _patch(step)
            header = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
            self.write("PATCH", "/images/%s" % before["uuid"], json=patch, headers=header)
        else:
            self._upload({**before, **item})
            if step.action is Action.RECREATE:  # servers of the old one keep it
                self.remove("/images/%s" % before["uuid"])

    def _upload(self, item: Object) -> None:
        file = Path(item.get("file") or "")
        if not item.get("file"):
            raise CloudError("it is not there, and there is no file to make it from: give file.", 400)
        own, glance = _digests(file, item.get("checksum", ""))
        checksum = item.get("checksum")
        if checksum and checksum != own:
            raise CloudError("the file %s has %s, and not %s: get it again." % (file, own, checksum), 400)
        names = ("name", "disk_format", "container_format", "visibility", "min_disk", "min_ram")
        body = {name: item[name] for name in names if name in item}
        body.setdefault("disk_format", "qcow2" if file.suffix in (".qcow2", ".img") else "raw")
        body.setdefault("container_format", "bare")
        body.update(item.get("properties", {}), **({CHECKSUM: checksum} if checksum else {}))
        id = self.write("POST", "/images", json=body)["id"]
        try:
            with file.open("rb") as stream:
                header = {"Content-Type": "application/octet-stream"}
                self.write("PUT", "/images/%s/file" % id, data=stream, headers=header)
            raw = self.cloud.request("image", "GET", "/images/%s" % id)
            if raw.get("os_hash_algo") == "sha512" and raw["os_hash_value"] != glance:
                raise CloudError("Glance has something else than the file %s: run again." % file, 400)
        except CloudError as error:
            if not error.fatal:
                self.remove("/images/%s" % id)
            raise

    # Flavors

    def _flavor(self, step: Step) -> None:
        item, before = step.wanted or {}, step.before or {}
        whole = {**before, **item}  # what nobody asked about is kept
        missing = [name for name in ("vcpus", "ram") if name not in whole]
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
            item = whole
            body = {
                "name": step.key,
                "vcpus": whole["vcpus"],
                "ram": whole["ram"],
                "disk": whole.get("disk", 0),
                "OS-FLV-EXT-DATA:ephemeral": whole.get("ephemeral", 0),
                "swap": whole.get("swap", 0),
                "os-flavor-access:is_public": whole.get("public", True),
            }
            id = self.write("POST", "/flavors", "compute", json={"flavor": body})["flavor"]["id"]
            there = {"extra_specs": {}, "projects": []}
        self._specs(item, there, "compute", "/flavors/%s/os-extra_specs" % id)
        self._let_in(item, there, "compute", "/flavors/%s/action" % id, "TenantAccess", "tenant")

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
        self._specs(item, there, service, "/types/%s/extra_specs" % id)
        self._let_in(item, there, service, "/types/%s/action" % id, "ProjectAccess", "project")

    # Both

    def _specs(self, item: Object, there: Object, service: str, path: str) -> None:
        if "extra_specs" not in item:
            return
        asked, actual = item["extra_specs"], there["extra_specs"]
        for name in actual.keys() - asked.keys():
            self.remove("%s/%s" % (path, name), service)
        more = {name: value for name, value in asked.items() if actual.get(name) != value}
        if more:
            self.write("POST", path, service, json={"extra_specs": more})

    def _let_in(self, item: Object, there: Object, service: str, path: str, action: str, target: str) -> None:
        if item.get("projects") is None:
            return
        actual = there.get("projects") or []
        for name in set(item["projects"]) - set(actual):
            self.write("POST", path, service, json={"add" + action: {target: item["project_ids"][name]}})
        for name in set(actual) - set(item["projects"]):
            self.write("POST", path, service, json={"remove" + action: {target: there["project_ids"][name]}})


def _patch(step: Step) -> list[Object]:
    """What changes an image, as JSON patch."""
    item, before = step.wanted or {}, step.before or {}
    patch: list[Object] = [
        {"op": "replace", "path": "/%s" % name, "value": item[name]}
        for name in ("visibility", "min_disk", "min_ram")
        if name in item and item[name] != before.get(name)
    ]
    asked, actual = item.get("properties"), before["properties"]
    if asked is not None:
        patch += [{"op": "remove", "path": "/%s" % _escaped(name)} for name in sorted(actual.keys() - asked.keys())]
        patch += [
            {"op": "replace" if name in actual else "add", "path": "/%s" % _escaped(name), "value": value}
            for name, value in asked.items()
            if actual.get(name) != value
        ]
    return patch


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _digests(file: Path, checksum: str) -> tuple[str, str]:
    """Of a file, the checksum of the kind that is asked for, and the one that Glance makes."""
    kind = checksum.partition(":")[0] or "sha512"
    own, glance = hashlib.new(kind), hashlib.sha512()
    try:
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                own.update(block)
                if kind != "sha512":
                    glance.update(block)
    except OSError as error:
        raise CloudError("the file %s cannot be read: %s." % (file, error.strerror), 400) from error
    return "%s:%s" % (kind, own.hexdigest()), own.hexdigest() if kind == "sha512" else glance.hexdigest()
