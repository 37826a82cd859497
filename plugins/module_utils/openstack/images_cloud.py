# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing images: Glance, with the bytes from a file that is verified."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..reconcile import Action, Object, SentenceError, Step
from .attempts import Attempts
from .catalog import CHECKSUM
from .client import Cloud, CloudError

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


def images(cloud: Cloud, names: list[str], project: str) -> list[Object]:
    """The images of the project that have these names. Raises SentenceError."""

    def find(name: str) -> list[Object]:
        found = cloud.request("image", "GET", "/images", params={"name": name, "limit": 100})["images"]
        return [raw for raw in found if raw["owner"] == project and raw["status"] == "active"]

    there = []
    for name, found in zip(names, cloud.together(find, names), strict=True):
        if len(found) > 1:
            raise SentenceError(
                "There are %d images named '%s' (%s): rename all but one, or remove them."
                % (len(found), name, ", ".join(sorted(raw["id"] for raw in found)))
            )
        there += [_image(raw) for raw in found]
    return there


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


def change_image(work: Attempts, step: Step) -> None:
    """Carry out a step of an image."""
    item, before = step.wanted or {}, step.before or {}
    if step.action is Action.DELETE:
        work.remove("/images/%s" % before["uuid"])
    elif step.action is Action.CHANGE:
        patch = _patch(step)
        header = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
        work.write("PATCH", "/images/%s" % before["uuid"], json=patch, headers=header)
    else:
        _upload(work, {**before, **item})
        if step.action is Action.RECREATE:  # servers of the old one keep it
            work.remove("/images/%s" % before["uuid"])


def _upload(work: Attempts, item: Object) -> None:
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
    id = work.write("POST", "/images", json=body)["id"]
    try:
        with file.open("rb") as stream:
            header = {"Content-Type": "application/octet-stream"}
            work.write("PUT", "/images/%s/file" % id, data=stream, headers=header)
        raw = work.cloud.request("image", "GET", "/images/%s" % id)
        if raw.get("os_hash_algo") == "sha512" and raw["os_hash_value"] != glance:
            raise CloudError("Glance has something else than the file %s: run again." % file, 400)
    except CloudError as error:
        if not error.fatal:
            work.remove("/images/%s" % id)
        raise


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
