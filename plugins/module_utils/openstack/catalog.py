# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images, flavors and volume types, from which VMs are made, as families of the reconcile engine. Pure."""

from __future__ import annotations

import re
import typing as t

from ..reconcile import Family, Field, Mode, Object, SentenceError

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

CHECKSUM = "openipu_checksum"  # property of an image: what was asked for and verified
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


def wanted(params: Object) -> dict[str, list[Object]]:
    """The objects that the options ask for, by kind; ``file`` of an image is kept. Raises SentenceError."""
    objects: dict[str, list[Object]] = {}
    for family in FAMILIES:
        if params[family.plural] is None:
            continue
        items = [{name: value for name, value in item.items() if value is not None} for item in params[family.plural]]
        for item in items:
            for name in ("extra_specs", "properties"):
                if name in item:
                    item[name] = {key: text(value) for key, value in item[name].items()}
            if "checksum" in item:
                item["checksum"] = _checked(item)
        objects[family.kind] = items
    return objects


def text(value: t.Any) -> str:
    """A value of an extra spec or property, as services keep it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _checked(item: Object) -> str:
    checksum = str(item["checksum"]).lower()
    match = _CHECKSUM.fullmatch(checksum)
    if not match or len(match[2]) != _DIGITS[match[1]]:
        raise SentenceError(
            "The checksum of image '%s' is '%s', which is not of the form sha256: or sha512: and hexadecimal digits: "
            "correct it." % (item["name"], item["checksum"])
        )
    return checksum
