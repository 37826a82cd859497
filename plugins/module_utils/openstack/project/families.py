# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Families of projects, users, role grants, quotas and key pairs, and the desired objects of a task. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Field, Mode, Object, UserError

PROJECT = Family("project", (Field("description"), Field("enabled")), key="name")
USER = Family(
    "user",
    (
        Field("password", Mode.WRITE_ONLY),
        Field("description"),
        Field("email"),
        Field("default_project"),
        Field("enabled"),
    ),
    key="name",
)
GRANT = Family("grant", ())
QUOTA = Family("quota", (Field("limit"),))
KEY_PAIR = Family("key_pair", (Field("public_key", immutable=True),))

FAMILIES = (PROJECT, USER, GRANT, QUOTA, KEY_PAIR)  # in the order of their dependencies

SERVICES = ("compute", "network", "volume")

ABSENT = "absent"  # field of a grant to revoke

_STR: dict[str, t.Any] = {"type": "str"}
_NAME: dict[str, t.Any] = {"type": "str", "required": True}
_BOOL: dict[str, t.Any] = {"type": "bool"}

OPTIONS: dict[str, t.Any] = {
    "domain": {"type": "str", "default": "default"},
    "projects": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": _NAME,
            "description": _STR,
            "enabled": _BOOL,
            "quotas": {"type": "dict", "options": {service: {"type": "dict"} for service in SERVICES}},
        },
    },
    "users": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": _NAME,
            "password": {"type": "str", "no_log": True},
            "description": _STR,
            "email": _STR,
            "default_project": _STR,
            "enabled": _BOOL,
            "roles": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "project": _NAME,
                    "role": {"type": "str", "default": "member"},
                    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
                },
            },
            "key_pairs": {
                "type": "list",
                "elements": "dict",
                "no_log": False,  # public keys
                "options": {"name": _NAME, "public_key": {"type": "str", "required": True, "no_log": False}},
            },
        },
    },
}


def desired(params: Object) -> dict[str, list[Object]]:
    """Return the desired objects of the options by kind. Grants to revoke have ``ABSENT``. Raises UserError."""
    objects: dict[str, list[Object]] = {family.kind: [] for family in FAMILIES}
    for project in params["projects"] or ():
        name = project["name"]
        objects[PROJECT.kind].append(_given(project, PROJECT))
        for service, limits in (project.get("quotas") or {}).items():
            for resource, limit in (limits or {}).items():
                objects[QUOTA.kind].append(_quota(name, service, resource, limit))
    for user in params["users"] or ():
        name = user["name"]
        objects[USER.kind].append(_given(user, USER))
        objects[GRANT.kind] += [_role(name, item) for item in user.get("roles") or ()]
        for pair in user.get("key_pairs") or ():
            objects[KEY_PAIR.kind].append(key_pair(name, pair["name"], pair["public_key"]))
    return objects


def _role(user: str, item: Object) -> Object:
    return {**grant(user, item["project"], item["role"]), ABSENT: item["state"] == "absent"}


def _given(item: Object, family: Family) -> Object:
    names = [family.key, *(f.name for f in family.fields)]
    return {name: item[name] for name in names if item.get(name) is not None}


def _quota(project: str, service: str, resource: str, limit: t.Any) -> Object:
    try:
        number = int(limit)
    except (TypeError, ValueError) as error:
        raise UserError(
            "Cannot read %s quota '%s' of project '%s': '%s' is not a number. Set a number, or -1 for no limit."
            % (service, resource, project, limit)
        ) from error
    return quota(project, service, resource, number)


def quota(project: str, service: str, resource: str, limit: int) -> Object:
    """Return the limit of one resource of a project."""
    return {
        "id": "%s/%s/%s" % (project, service, resource),
        "project": project,
        "service": service,
        "resource": resource,
        "limit": limit,
    }


def grant(user: str, project: str, role: str) -> Object:
    """Return a role of a user in a project."""
    return {"id": "%s/%s/%s" % (user, project, role), "user": user, "project": project, "role": role}


def key_pair(user: str, name: str, public_key: str) -> Object:
    """Return a public key of a user for servers, without the comment at its end."""
    return {
        "id": "%s/%s" % (user, name),
        "user": user,
        "name": name,
        "public_key": " ".join(public_key.split()[:2]),
    }
