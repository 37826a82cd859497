# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signs of an incomplete read of Neutron. No I/O."""

from __future__ import annotations

from ...reconcile import Object
from ..common.tags import owner_of
from .families import NETWORK, PORT, RESOURCES, SHARE, SUBNET
from .parse import Raw


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
    """Return whether networks may be missing in a read without a contradiction."""
    if NETWORK.kind not in raw:
        return False
    networks = {item["id"] for item in raw[NETWORK.kind]}
    if any(item["network_id"] not in networks for item in _own(raw, PORT.kind, project)):
        return True
    tagged = (item for kind in raw for item in _own(raw, kind, project) if owner_of(item) == owner)
    return not networks and any(tagged)


def _own(raw: Raw, kind: str, project: str) -> list[Object]:
    return [item for item in raw.get(kind, ()) if not project or item["project_id"] == project]
