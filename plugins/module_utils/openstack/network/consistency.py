# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs of an incomplete read of Neutron. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Object
from ..common.tags import owner_of
from .families import NETWORK, PORT, RESOURCES, ROUTER, SECURITY_GROUP, SHARE, SUBNET
from .parse import ROUTER_PORTS, Raw


def contradiction(raw: Raw, project: str) -> str:
    """Return an impossible reference to a missing network as text; empty without one.

    Neutron shows every subnet and share of a project together with its network. An empty ``project`` selects the
    objects of all projects, as an administrator reads them.
    """
    if NETWORK.kind not in raw:
        return ""
    networks = {item["id"] for item in raw[NETWORK.kind]}
    for item in _own(raw, SUBNET.kind, project):
        if item["network_id"] not in networks:
            return "subnet '%s' has no network" % (item["name"] or item["id"])
    for item in _own(raw, SHARE.kind, project):
        if item.get("object_type") == RESOURCES[NETWORK.kind] and item["object_id"] not in networks:
            return "share '%s' has no network" % item["id"]
    return ""


def doubt(raw: Raw, owner: str, project: str) -> str:
    """Return the sign of missing objects in a read without a contradiction, as text; empty without one.

    Each doubt has another possible cause, such as an object of another project that Neutron does not show.
    """
    ids = {kind: {item["id"] for item in items} for kind, items in raw.items()}
    for user, kind, id in _references(raw, project):
        if kind in ids and id not in ids[kind]:
            return "%s refers to the missing %s '%s'" % (user, kind, id)
    # A port can have groups of other projects, but the project has at least its default group.
    if SECURITY_GROUP.kind in raw and not _own(raw, SECURITY_GROUP.kind, project):
        for item in _own(raw, PORT.kind, project):
            if item["security_groups"]:
                return "port '%s' has security groups, but the project has none" % (item["name"] or item["id"])
    if NETWORK.kind in raw and not raw[NETWORK.kind]:
        for kind in raw:
            for item in _own(raw, kind, project):
                if owner_of(item) == owner:
                    return "no network exists, but %s does" % _title(kind, item)
    return ""


def _references(raw: Raw, project: str) -> t.Iterator[tuple[str, str, str]]:
    """Yield the title of each network and port of the project, and kind and id of an object that it refers to."""
    for item in _own(raw, NETWORK.kind, project):
        for id in item.get("subnets") or ():
            yield _title(NETWORK.kind, item), SUBNET.kind, id
    for item in _own(raw, PORT.kind, project):
        yield _title(PORT.kind, item), NETWORK.kind, item["network_id"]
        if item["device_owner"] in ROUTER_PORTS:
            yield _title(PORT.kind, item), ROUTER.kind, item["device_id"]


def _title(kind: str, item: Object) -> str:
    return "%s '%s'" % (kind.replace("_", " "), item["name"] or item["id"])


def _own(raw: Raw, kind: str, project: str) -> list[Object]:
    return [item for item in raw.get(kind, ()) if not project or item["project_id"] == project]
