# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Families of images, flavors and volume types, and the desired objects of a task. No I/O."""

from __future__ import annotations

import re
import typing as t

from ...reconcile import Family, Field, Mode, Object, UserError
from ..common.type_access import spec_text

IMAGE = Family(
    "image",
    (
        Field("checksum", immutable=True),
        Field("disk_format", immutable=True),
        Field("container_format", immutable=True),
        Field("visibility"),
        Field("min_disk"),
        Field("min_ram"),
        Field("properties", Mode.STRICT),
    ),
    key="name",
)
FLAVOR = Family(
    "flavor",
    (
        Field("vcpus", immutable=True),
        Field("ram", immutable=True),
        Field("disk", immutable=True),
        Field("ephemeral", immutable=True),
        Field("swap", immutable=True),
        Field("public", immutable=True),
        Field("extra_specs"),
        Field("projects", Mode.SET),
    ),
    key="name",
)
VOLUME_TYPE = Family(
    "volume_type",
    (Field("description"), Field("public"), Field("extra_specs"), Field("projects", Mode.SET)),
    key="name",
)
FAMILIES = (IMAGE, FLAVOR, VOLUME_TYPE)

CHECKSUM = "openipu_checksum"  # image property with the checksum of the verified file
_CHECKSUM = re.compile(r"(sha256|sha512):([0-9a-f]+)")
_DIGITS = {"sha256": 64, "sha512": 128}

_STR: dict[str, t.Any] = {"type": "str"}
_NAME: dict[str, t.Any] = {"type": "str", "required": True}
_INT: dict[str, t.Any] = {"type": "int"}
_BOOL: dict[str, t.Any] = {"type": "bool"}
_NAMES: dict[str, t.Any] = {"type": "list", "elements": "str"}
_SPECS: dict[str, t.Any] = {"type": "dict"}


def _each(options: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    return {"type": "list", "elements": "dict", "options": options, **more}


OPTIONS: dict[str, t.Any] = {
    "images": _each(
        {
            "name": _NAME,
            "file": {"type": "path"},
            "checksum": _STR,
            "disk_format": {
                "type": "str",
                "choices": ["raw", "qcow2", "vmdk", "vdi", "vhd", "vhdx", "iso", "aki", "ari", "ami"],
            },
            "container_format": {"type": "str", "choices": ["bare", "ovf", "ova", "aki", "ari", "ami", "docker"]},
            "visibility": {"type": "str", "choices": ["public", "private", "shared", "community"]},
            "min_disk": _INT,
            "min_ram": _INT,
            "properties": _SPECS,
        }
    ),
    "flavors": _each(
        {
            "name": _NAME,
            "vcpus": _INT,
            "ram": _INT,
            "disk": _INT,
            "ephemeral": _INT,
            "swap": _INT,
            "public": _BOOL,
            "extra_specs": _SPECS,
            "projects": _NAMES,
        }
    ),
    "volume_types": _each(
        {"name": _NAME, "description": _STR, "public": _BOOL, "extra_specs": _SPECS, "projects": _NAMES}
    ),
}


def desired(params: Object) -> dict[str, list[Object]]:
    """Return the desired objects of the options by kind; images include ``file``. Raises UserError."""
    objects: dict[str, list[Object]] = {}
    for family in FAMILIES:
        if params[family.plural] is None:
            continue
        items = [{name: value for name, value in item.items() if value is not None} for item in params[family.plural]]
        for item in items:
            for name in ("extra_specs", "properties"):
                if name in item:
                    item[name] = {key: spec_text(value) for key, value in item[name].items()}
            if "checksum" in item:
                item["checksum"] = _checksum(item)
        objects[family.kind] = items
    return objects


def _checksum(item: Object) -> str:
    checksum = str(item["checksum"]).lower()
    match = _CHECKSUM.fullmatch(checksum)
    if not match or len(match[2]) != _DIGITS[match[1]]:
        raise UserError(
            "Cannot read the checksum of image '%s': '%s' is not of the form sha256:DIGITS "
            "or sha512:DIGITS with all hexadecimal digits. "
            "Correct it." % (item["name"], item["checksum"])
        )
    return checksum
