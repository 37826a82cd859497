# SPDX-License-Identifier: GPL-3.0-or-later
"""Visibility of IPUs in Kubernetes: which nodes reach a V-IPU controller, and how many IPUs a node advertises.

A node reaches the controllers whose label it carries, and those without a label. It advertises the IPUs of all of them
that Kubernetes may use: free ones, and those in partitions of jobs and pods. Each node of a controller advertises all
these IPUs, because each node can use any of them. The sum over nodes is therefore too high. The reservation of a
partition is the limit, and so is the scheduler extender.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from openipu.kubernetes.domain import reserved
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.tracking import Record

OWNER_ANNOTATION = f"{reserved.PREFIX}advertised-by"  # namespace of the proxy that advertises the IPUs of a node
_CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
FIELDS = ("capacity", "allocatable")  # of a status; kubelet derives the second from the first, but only later
_QUANTITY = re.compile(r"([0-9]+)([kMG]?)")  # the API server writes 2000 as 2k
_POWERS = {"": 0, "k": 1, "M": 2, "G": 3}

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition at a V-IPU controller. ``state``: ACTIVE, PENDING, REMOVED or ERROR."""

    state: str
    ipus: int
    is_counted: bool = True  # whether the total has its IPUs; not those of other V-IPU clusters


@dataclass(frozen=True, slots=True)
class Policy:
    """Nodes that advertise IPUs. ``owner``: namespace of this proxy."""

    owner: str
    enabled: bool = True
    control_plane: bool = False  # also nodes of the control plane


def labels(node: Node) -> Mapping[str, str]:
    """Return the labels of a node."""
    return node["metadata"].get("labels") or {}


def reaches(node_labels: Mapping[str, str], controller: Controller) -> bool:
    """Return whether nodes with these labels reach the IPUs of a controller."""
    if controller.node_label is None:
        return True
    key, value = controller.node_label
    return node_labels.get(key) == value


def usable_ipus(total: int, partitions: Mapping[str, Partition], records: Iterable[Record]) -> int:
    """Return the IPUs of a controller that Kubernetes may use: all except those in partitions of others.

    Free IPUs are not counted: a partition that is created meanwhile would be in both counts, or in none.
    ``records``: those of this controller before and after its partitions were listed. A record exists before its
    partition does, and afterwards, so none of these partitions counts as that of others.
    """
    own = {each.id for each in records}
    return max(0, total - sum(each.ipus for id, each in partitions.items() if each.is_counted and id not in own))


def is_control_plane(node: Node) -> bool:
    """Return whether a node belongs to the control plane of Kubernetes."""
    return any(each in labels(node) for each in _CONTROL_PLANE_LABELS)


def change(node: Node, usable: Mapping[Controller, int | None], policy: Policy) -> dict[str, Any] | None:
    """Return the patch of the status of a node so that it advertises its IPUs, None if it needs none.

    ``usable``: controller -> IPUs, None if they are unknown; a node of such a controller keeps its value. The resource
    is removed only where this proxy has added it. Nodes of another proxy stay unchanged.
    """
    advertiser = (node["metadata"].get("annotations") or {}).get(OWNER_ANNOTATION)
    if advertiser not in (None, policy.owner):
        return None
    reached: list[int | None] = []
    if policy.enabled and (policy.control_plane or not is_control_plane(node)):
        reached = [ipus for controller, ipus in usable.items() if reaches(labels(node), controller)]
    known = [ipus for ipus in reached if ipus is not None]
    if len(known) < len(reached):
        return None
    if not reached and advertiser is None:
        return None
    ipus, owner = (sum(known), policy.owner) if reached else (None, None)
    status = node.get("status") or {}
    present = [quantity((status.get(each) or {}).get(reserved.IPU_RESOURCE)) for each in FIELDS]
    if present == [ipus] * len(FIELDS) and advertiser == owner:
        return None
    value = None if ipus is None else str(ipus)
    return {
        "metadata": {"annotations": {OWNER_ANNOTATION: owner}},
        "status": {each: {reserved.IPU_RESOURCE: value} for each in FIELDS},
    }


def quantity(text: str | int | None) -> int | None:
    """Return the number of an extended resource, such as 2000 for ``2k``. None if there is none."""
    match = _QUANTITY.fullmatch(str(text))
    return int(match[1]) * 1000 ** _POWERS[match[2]] if match else None


class UsableIpus:
    """Usable IPUs of controllers in the past. Those of a controller that does not respond are kept for a while."""

    def __init__(self, keep_seconds: float, now: float) -> None:
        """``now``: start of the proxy. Until ``keep_seconds`` later, controllers that were never read are unknown."""
        self._keep_seconds = keep_seconds
        self._started = now
        self._known: dict[str, tuple[float, int]] = {}  # address -> when, and IPUs

    def update(self, address: str, ipus: int, now: float) -> None:
        """Note the IPUs of a controller that has responded."""
        self._known[address] = now, ipus

    def get(self, address: str, now: float) -> int | None:
        """Return the IPUs of a controller, 0 if it has not responded for too long, None if they are unknown."""
        since, ipus = self._known.get(address, (self._started, None))
        return ipus if now - since < self._keep_seconds else 0
