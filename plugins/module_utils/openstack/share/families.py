# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Families of share types, shares and access rules, and the desired objects of a task. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Field, Mode, Object, UserError
from ..common.type_access import spec_text

SERVICE = "shared_file_system"  # type of the service
SHARE_SERVERS = "driver_handles_share_servers"  # extra spec of every share type

SHARE_TYPE = Family(
    "share_type",
    (
        Field("share_servers", immutable=True),
        Field("description"),
        Field("public"),
        Field("extra_specs"),
        Field("projects", Mode.SET),
    ),
    key="name",
)
FILE_SHARE = Family(
    "share",
    (
        Field("usable", immutable=True),  # False for a share in state error: it is recreated
        Field("protocol", immutable=True),
        Field("type", immutable=True),
        Field("size"),
        Field("description"),
    ),
    key="name",
)
ACCESS_RULE = Family(
    "access_rule",
    (
        Field("usable", immutable=True),  # False for a rule in state error: it is recreated
        Field("level", immutable=True),
    ),
)

FAMILIES = (SHARE_TYPE, FILE_SHARE, ACCESS_RULE)  # in the order of their dependencies

_STR: dict[str, t.Any] = {"type": "str"}
_NAME: dict[str, t.Any] = {"type": "str", "required": True}
_BOOL: dict[str, t.Any] = {"type": "bool"}

OPTIONS: dict[str, t.Any] = {
    "share_types": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": _NAME,
            "share_servers": _BOOL,
            "description": _STR,
            "public": _BOOL,
            "extra_specs": {"type": "dict"},
            "projects": {"type": "list", "elements": "str"},
        },
    },
    "shares": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": _NAME,
            "protocol": {"type": "str", "choices": ["NFS", "CIFS", "CEPHFS", "GLUSTERFS", "HDFS", "MAPRFS"]},
            "type": _STR,
            "size": {"type": "int"},
            "description": _STR,
            "access": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "to": _NAME,
                    "type": {"type": "str", "choices": ["ip", "user", "cert", "cephx"], "default": "ip"},
                    "level": {"type": "str", "choices": ["rw", "ro"], "default": "rw"},
                },
            },
        },
    },
}


def desired(params: Object) -> dict[str, list[Object]]:
    """Return the desired objects of the options by kind. Raises UserError."""
    types = [_given(item) for item in params["share_types"] or ()]
    for item in types:
        if "extra_specs" in item:
            item["extra_specs"] = {name: spec_text(value) for name, value in item["extra_specs"].items()}
            if SHARE_SERVERS in item["extra_specs"]:
                raise UserError(
                    "Cannot set extra spec %s of share type '%s': it has its own option. Use share_servers instead."
                    % (SHARE_SERVERS, item["name"])
                )
    shares = [_given(item) for item in params["shares"] or ()]
    rules = [access_rule(share["name"], **rule) for share in shares for rule in share.get("access") or ()]
    return {
        SHARE_TYPE.kind: types,
        FILE_SHARE.kind: [{**share, "usable": True} for share in shares],
        ACCESS_RULE.kind: [{**rule, "usable": True} for rule in rules],
    }


def _given(item: Object) -> Object:
    return {name: value for name, value in item.items() if value is not None}


def only_removes_access(share: Object) -> bool:
    """Return whether a task only removes the access rules of a desired share, and so does not need it available."""
    return share.get("access") == [] and share.keys() <= {"name", "access", "usable"}


def access_rule(share: str, to: str, type: str, level: str) -> Object:
    """Return a rule that allows ``to`` to mount a share."""
    return {"id": "%s/%s/%s" % (share, type, to), "share": share, "to": to, "type": type, "level": level}
