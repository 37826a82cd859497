# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup of OpenStack objects by name: projects, and errors for missing and ambiguous names."""

from __future__ import annotations

import re
import typing as t

from ...reconcile import Family, Object, UserError
from .client import Cloud

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def project_id(cloud: Cloud, name: str) -> str | None:
    """Return the id of a project, given its name or id; None when no project has the name. Raises UserError."""
    if _ID.fullmatch(name):
        return name
    found = cloud.list("identity", "/projects", "projects", name=name)
    if len(found) > 1:
        ids = ", ".join(sorted(raw["id"] for raw in found))
        raise UserError(
            "Cannot select project '%s': %d projects have this name. Use one of these IDs instead: %s."
            % (name, len(found), ids)
        )
    return str(found[0]["id"]) if found else None


def images_by_name(cloud: Cloud, name: str, **query: str) -> list[Object]:
    """Read all images with a name, from all pages. For an administrator, Glance lists those of all projects."""
    found: list[Object] = []
    page: dict[str, str] = {}
    while True:
        body = cloud.request("image", "GET", "/images", params={"name": name, **query, **page})
        found += body["images"]
        if not body.get("next") or not body["images"]:
            return found
        page = {"marker": found[-1]["id"]}


def missing_project(name: str, remedy: str = "Create it first, or correct the name.") -> str:
    """Return the message for a project that does not exist."""
    return "Cannot find project '%s'. %s" % (name, remedy)


def ambiguous(family: Family, name: str, found: t.Sequence[Object]) -> UserError:
    """Return the error for several objects of the same name."""
    kind, plural = family.title, family.plural.replace("_", " ")
    return UserError(
        "Cannot select %s '%s': %d %s have this name (%s). Rename or remove all but one."
        % (kind, name, len(found), plural, ", ".join(sorted(raw["id"] for raw in found)))
    )
