# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Glance API: reads and writes of images, whose content is a verified file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...reconcile import Action, Object, Step
from ..common.client import Cloud, CloudError
from ..common.lookup import ambiguous, images_by_name
from ..common.steps import step_id
from ..common.writer import StepWriter
from .families import CHECKSUM, IMAGE

_BLOCK = 1 << 20  # bytes
# Fields of every image. All others are properties.
_STANDARD_FIELDS = frozenset(
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


def fetch_images(cloud: Cloud, names: list[str], project: str) -> list[Object]:
    """Read the images of the project that have these names. Raises UserError."""

    def find(name: str) -> list[Object]:
        found = images_by_name(cloud, name, owner=project)
        return [raw for raw in found if raw["owner"] == project and raw["status"] == "active"]

    images = []
    for name, found in zip(names, cloud.map(find, names), strict=True):
        if len(found) > 1:
            raise ambiguous(IMAGE, name, found)
        images += [_image(raw) for raw in found]
    return images


def _image(raw: Object) -> Object:
    properties = {
        key: value
        for key, value in raw.items()
        if key not in _STANDARD_FIELDS and key != CHECKSUM and not key.startswith(("owner_specified.", "os_glance_"))
    }
    names = ("name", "disk_format", "container_format", "visibility", "min_disk", "min_ram")
    image = {"uuid": raw["id"], "properties": properties, **{name: raw[name] for name in names}}
    # Glance computes SHA-512 itself. Other checksums come from the property.
    checksum = raw.get(CHECKSUM)
    digest = "%s:%s" % (raw.get("os_hash_algo"), raw.get("os_hash_value"))
    image["checksum"] = checksum if checksum and not checksum.startswith("sha512:") else digest
    return image


def write_image(writer: StepWriter, step: Step) -> None:
    """Write one step of an image. Raises CloudError."""
    item, before = step.desired or {}, step.before or {}
    if step.action is Action.DELETE:
        writer.remove("/images/%s" % before["uuid"])
    elif step.action is Action.CHANGE:
        patch = _patch(step)
        header = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
        writer.write("PATCH", "/images/%s" % before["uuid"], json=patch, headers=header)
    else:
        writer.created_ids[step_id(step)] = _upload(writer, {**before, **item})
        if step.action is Action.RECREATE:  # servers of the old image keep it
            writer.remove("/images/%s" % before["uuid"])


def _upload(writer: StepWriter, item: Object) -> str:
    """Create an image, and return its id. Raises CloudError."""
    file = Path(item.get("file") or "")
    if not item.get("file"):
        raise CloudError("a new image needs a file. Set file.", 400)
    own, glance = _digests(file, item.get("checksum", ""))
    checksum = item.get("checksum")
    if checksum and checksum != own:
        raise CloudError("the file %s has %s instead of %s. Download it again." % (file, own, checksum), 400)
    names = ("name", "disk_format", "container_format", "visibility", "min_disk", "min_ram")
    body = {name: item[name] for name in names if name in item}
    body.setdefault("disk_format", "qcow2" if file.suffix in (".qcow2", ".img") else "raw")
    body.setdefault("container_format", "bare")
    body.update(item.get("properties", {}), **({CHECKSUM: checksum} if checksum else {}))
    id = writer.write("POST", "/images", json=body)["id"]
    try:
        with file.open("rb") as stream:
            header = {"Content-Type": "application/octet-stream"}
            writer.write("PUT", "/images/%s/file" % id, data=stream, headers=header)
        raw = writer.cloud.request("image", "GET", "/images/%s" % id)
        if raw.get("os_hash_algo") == "sha512" and raw["os_hash_value"] != glance:
            raise CloudError("Glance stored other content than the file %s. Run the task again." % file, 400)
    except CloudError as error:
        if not error.fatal:
            writer.remove("/images/%s" % id)
        raise
    return str(id)


def _patch(step: Step) -> list[Object]:
    """Return the JSON patch of a changed image."""
    item, before = step.desired or {}, step.before or {}
    patch: list[Object] = [
        {"op": "replace", "path": "/%s" % name, "value": item[name]}
        for name in ("visibility", "min_disk", "min_ram")
        if name in item and item[name] != before.get(name)
    ]
    desired, actual = item.get("properties"), before["properties"]
    if desired is not None:
        patch += [{"op": "remove", "path": "/%s" % _escaped(name)} for name in sorted(actual.keys() - desired.keys())]
        patch += [
            {"op": "replace" if name in actual else "add", "path": "/%s" % _escaped(name), "value": value}
            for name, value in desired.items()
            if actual.get(name) != value
        ]
    return patch


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _digests(file: Path, checksum: str) -> tuple[str, str]:
    """Return the checksum of a file, of the kind of ``checksum`` or SHA-512, and the SHA-512 digest of Glance."""
    kind = checksum.partition(":")[0] or "sha512"
    own, glance = hashlib.new(kind), hashlib.sha512()
    try:
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                own.update(block)
                if kind != "sha512":
                    glance.update(block)
    except OSError as error:
        message = "cannot read the file %s: %s. Check that it exists and is readable."
        raise CloudError(message % (file, error.strerror), 400) from error
    return "%s:%s" % (kind, own.hexdigest()), own.hexdigest() if kind == "sha512" else glance.hexdigest()
