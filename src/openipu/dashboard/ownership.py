# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of tenants, derived from the records in their projects. No I/O.

The playbooks record each vPOD as a tag of the project of its tenant. Only administrators, and managers of the
domain of the project, can change these tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from openipu.shared.openstack.common.tags import TAG
from openipu.shared.vipu.object_rules import IPUS_PER_MACHINE

Object = dict[str, Any]


@dataclass(frozen=True)
class Project:
    """Project of OpenStack with the names of its vPODs."""

    id: str
    name: str
    vpods: tuple[str, ...]


@dataclass(frozen=True)
class Objects:
    """Allocations and partitions, as a controller returns them."""

    allocations: Sequence[Object] = ()
    partitions: Sequence[Object] = ()


def ipus(allocations: Iterable[Object]) -> int:
    """Return the number of IPUs of the machines in allocations. An allocation that is listed twice counts once."""
    agents = {each["id"]: len(each["agents"]) for each in allocations}
    return sum(agents.values()) * IPUS_PER_MACHINE


@dataclass(frozen=True)
class Vpod:
    """One vPOD. It has no allocation while it is being created or destroyed."""

    name: str
    project: str
    allocation: str = ""
    machines: Sequence[str] = ()
    partitions: Sequence[Object] = field(default=())

    @property
    def ipus(self) -> int:
        """Number of IPUs of its machines."""
        return len(self.machines) * IPUS_PER_MACHINE


def project(id: str, name: str, tags: Iterable[str]) -> Project:
    """Return a project with the vPODs in its tags."""
    return Project(id, name, tuple(sorted(tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG))))


def owned(owner: Project, objects: Objects) -> Objects:
    """Return the objects of a project.

    The allocation of a vPOD has its name. A tenant with its own data network has one allocation of another name,
    which contains the partitions of all its vPODs.
    """
    names = {*owner.vpods, *(each["allocation"] for each in objects.partitions if each["id"] in owner.vpods)}
    return Objects(
        [each for each in objects.allocations if each["id"] in names],
        [each for each in objects.partitions if each["allocation"] in names],
    )


def of_orders(team: str, allocations: Iterable[Object]) -> list[Object]:
    """Return the allocations of the orders of IPUs of a team, which the playbook names ``TEAM.ORDER``."""
    return [each for each in allocations if each["id"].startswith(f"{team}.")]


def vpods(owner: Project, objects: Objects) -> list[Vpod]:
    """Return the vPODs of a project with their objects."""
    own = owned(owner, objects)
    allocations = {each["id"]: each for each in own.allocations}
    partitions = {each["id"]: each for each in own.partitions}
    found = []
    for name in owner.vpods:
        place = partitions[name]["allocation"] if name in partitions else name
        allocation = allocations.get(place)
        if allocation is None:
            found.append(Vpod(name, owner.name))
            continue
        members = [each for each in own.partitions if each["allocation"] == place]
        # In an allocation of several vPODs, each has the partition with its name.
        inside = members if place == name else [each for each in members if each["id"] == name]
        found.append(Vpod(name, owner.name, place, tuple(allocation["agents"]), inside))
    return found


def all_vpods(projects: Iterable[Project], objects: Objects) -> list[Vpod]:
    """Return the vPODs of all projects, then the allocations of none, as vPODs without a project."""
    found = [vpod for each in sorted(projects, key=lambda each: each.name) for vpod in vpods(each, objects)]
    used = {vpod.allocation for vpod in found}
    for allocation in objects.allocations:
        if allocation["id"] not in used:
            members = [each for each in objects.partitions if each["allocation"] == allocation["id"]]
            found.append(Vpod(allocation["id"], "", allocation["id"], tuple(allocation["agents"]), members))
    return found
