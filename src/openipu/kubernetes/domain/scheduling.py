# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes on which a pod with IPUs can start, because one of their V-IPU controllers has room for its partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openipu.kubernetes.domain import reserved, visibility
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.job import MAX_IPUS
from openipu.shared.vipu.object_rules import is_power_of_two

SIZES = tuple(1 << power for power in range(MAX_IPUS.bit_length()))

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Room:
    """Room of a controller. ``fits``: size of a partition -> how many fit. ``free``: IPUs, at least."""

    fits: Mapping[int, int] = field(default_factory=dict)
    free: int = 0
    responds: bool = True

    def has(self, size: int) -> bool:
        """Return whether a partition fits."""
        return self.free >= size and self.fits.get(size, 0) > 0


@dataclass(frozen=True, slots=True)
class Selection:
    """Names of nodes on which a pod can start, and name -> reason of others."""

    suitable: tuple[str, ...]
    rejected: Mapping[str, str]


def requested_ipus(pod: Pod) -> int:
    """Return the size of the partition that a pod still needs, 0 for none. Raises ValueError for an invalid one.

    The annotation decides, as at the webhook, or else the extended resource. Pods of IPUJobs need no room: their
    partition is reserved before they are created.
    """
    metadata = pod["metadata"]
    if any(each["kind"] == "IPUJob" for each in metadata.get("ownerReferences") or []):
        return 0
    annotation = (metadata.get("annotations") or {}).get(reserved.IPU_RESOURCE)
    if annotation is None:
        ipus: int | None = _resource(pod["spec"])
    else:
        ipus = int(annotation) if annotation.isascii() and annotation.isdecimal() else None
    if ipus != 0 and (ipus is None or ipus > MAX_IPUS or not is_power_of_two(ipus)):
        number = annotation if annotation is not None else ipus
        raise ValueError(f"a partition cannot have {number} IPUs, only a power of two up to {MAX_IPUS}")
    return ipus


def select(nodes: Iterable[tuple[str, Mapping[str, str]]], size: int, rooms: Mapping[Controller, Room]) -> Selection:
    """Return the nodes with room for a partition. ``nodes``: names and labels."""
    suitable, rejected = [], {}
    for name, labels in nodes:
        reason = _obstacle(size, {each: room for each, room in rooms.items() if visibility.reaches(labels, each)})
        if reason:
            rejected[name] = reason
        else:
            suitable.append(name)
    return Selection(tuple(suitable), rejected)


def _obstacle(size: int, rooms: Mapping[Controller, Room]) -> str:
    """Return why no controller of a node has room, empty if one has."""
    if not rooms:
        return "node carries the label of no V-IPU controller"
    if any(each.has(size) for each in rooms.values()):
        return ""
    if not any(each.responds for each in rooms.values()):
        return "V-IPU controller of node does not respond"
    return f"V-IPU controller of node has no room for a partition of {size} IPU{'s' if size > 1 else ''}"


def _resource(spec: Mapping[str, Any]) -> int:
    """Return the requested extended resource of a pod: of its containers together, or of an init container."""
    together = sum(_ipus(each) for each in spec.get("containers") or [])
    return max([together, *(_ipus(each) for each in spec.get("initContainers") or [])])


def _ipus(container: Mapping[str, Any]) -> int:
    resources = container.get("resources") or {}
    found = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return visibility.quantity(found.get(reserved.IPU_RESOURCE)) or 0
