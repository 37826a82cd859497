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


def is_doubtful(raw: Raw, owner: str, project: str) -> bool:
    """Return whether objects may be missing in a read without a contradiction.

    Each doubt has another possible cause, such as an object of another project that Neutron does not show.
    """
    ids = {kind: {item["id"] for item in items} for kind, items in raw.items()}
    if any(kind in ids and id not in ids[kind] for kind, id in _references(raw, project)):
        return True
    # A port can have groups of other projects, but the project has at least its default group.
    has_no_groups = SECURITY_GROUP.kind in raw and not _own(raw, SECURITY_GROUP.kind, project)
    if has_no_groups and any(item["security_groups"] for item in _own(raw, PORT.kind, project)):
        return True
    tagged = (item for kind in raw for item in _own(raw, kind, project) if owner_of(item) == owner)
    return NETWORK.kind in raw and not raw[NETWORK.kind] and any(tagged)


def _references(raw: Raw, project: str) -> t.Iterator[tuple[str, str]]:
    """Yield kind and id of the objects that the networks and ports of the project refer to."""
    for item in _own(raw, NETWORK.kind, project):
        for id in item.get("subnets") or ():
            yield SUBNET.kind, id
    for item in _own(raw, PORT.kind, project):
        yield NETWORK.kind, item["network_id"]
        if item["device_owner"] in ROUTER_PORTS:
            yield ROUTER.kind, item["device_id"]


def _own(raw: Raw, kind: str, project: str) -> list[Object]:
    return [item for item in raw.get(kind, ()) if not project or item["project_id"] == project]
