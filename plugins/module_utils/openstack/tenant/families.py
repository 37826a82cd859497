# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Families of POD tags, granted roles and created V-IPU users, and the desired objects of a task. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Field, Object

POD_TAG = Family("tag", (), key="name")
ROLE = Family("role", (Field("tagged"), Field("granted")))
VIPU_USER = Family("vipu_user", (), key="name")
FAMILIES = (POD_TAG, ROLE, VIPU_USER)

OPTIONS: dict[str, t.Any] = {
    "pod": {"type": "str", "required": True},
    "project": {"type": "str", "required": True},
    "roles": {"type": "list", "elements": "str"},
    "vipu_users": {"type": "list", "elements": "str"},
}


def desired(params: Object) -> dict[str, list[Object]]:
    """Return the desired objects of the options by kind; those that are not managed have no entry."""
    absent = params["state"] == "absent"
    objects: dict[str, list[Object]] = {POD_TAG.kind: [] if absent else [{"name": params["pod"]}]}
    for family in (ROLE, VIPU_USER):
        names = [] if absent else params[family.plural]
        if names is not None:
            objects[family.kind] = [{"name": name} for name in names]
    return objects


def lent_role(name: str, role: str, user: str, own_user: bool) -> Object:
    """Return a role that is granted to a user, given the ids of both. Keys of other users' roles name the user."""
    key = name if own_user else "%s of user %s" % (name, user)
    return {"id": key, "role": role, "user": user, "tagged": True, "granted": True}
