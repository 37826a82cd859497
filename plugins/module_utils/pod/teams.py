# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the key ``teams`` in pod.yml, and the quotas of V-IPU, Kubernetes and OpenStack from it."""

from __future__ import annotations

import typing as t

from ..vipu.object_rules import IPUS_PER_MACHINE
from . import model, spec
from .addresses import UniqueValues
from .mistakes import Mistakes
from .source import Block


def read(
    top: Block, racks: t.Iterable[model.Rack], cloud: model.Cloud | None, mistakes: Mistakes
) -> tuple[model.Team, ...]:
    """Return the teams. Teams with mistakes are left out, and the mistakes are recorded."""
    reader = _Reader(top, sum(len(rack.machines) for rack in racks), cloud)
    teams = []
    for block in spec.POD.children(top, "teams", mistakes):
        with mistakes.collect():
            teams.append(reader.team(block))
    return tuple(teams)


def quotas(teams: t.Iterable[model.Team]) -> dict[str, dict[str, t.Any]]:
    """Return the settings of each team by its name, as the variable ``pod_teams``."""
    found = {}
    for team in teams:
        optional = {"namespace": team.namespace, "project": team.project}
        found[team.name] = {"ipus": team.ipus, **{key: value for key, value in optional.items() if value}}
    return found


def namespace_quotas(teams: t.Iterable[model.Team]) -> list[dict[str, t.Any]]:
    """Return the quotas of namespaces as the variable ``ipu_operator_quotas``."""
    return [{"namespace": team.namespace, "ipus": team.ipus} for team in teams if team.namespace]


def projects(teams: t.Iterable[model.Team]) -> list[dict[str, t.Any]]:
    """Return the projects with their quotas as the option ``projects`` of openstack_pod_project.

    Nova does not count IPUs. A vPOD occupies at least one IPU-Machine and has one VM in the project.
    """
    return [
        {"name": team.project, "quotas": {"compute": {"instances": team.instances}}} for team in teams if team.project
    ]


class _Reader:
    """Reader of the teams of one POD."""

    def __init__(self, top: Block, machines: int, cloud: model.Cloud | None) -> None:
        self._top = top
        self._total = machines * IPUS_PER_MACHINE
        self._tenants = {tenant.project: len(tenant.machines) for tenant in cloud.tenants} if cloud else {}
        self._names = UniqueValues("team")
        self._namespaces, self._projects = UniqueValues("namespace"), UniqueValues("project")

    def team(self, block: Block) -> model.Team:
        """Return a team. Raises PodError."""
        name, ipus = block["name"], block["ipus"]
        self._names.take(name, None, block.error("", "name"))
        if not 1 <= ipus <= self._total:
            message = "team '%s': the quota must be 1 to %d IPUs, the IPUs of the POD, not %d"
            raise block.error(message % (name, self._total, ipus), "ipus")
        namespace = self._place(block, "namespace", "kubernetes", self._namespaces)
        project = self._place(block, "project", "openstack", self._projects)
        instances = block.get("instances")
        if instances is not None and project is None:
            message = "team '%s': 'instances' limits the VMs of a project: set 'project', or remove 'instances'"
            raise block.error(message % name, "instances")
        if instances is not None and not spec.in_range(instances, spec.INSTANCES):
            message = "team '%s': invalid number of instances %d: use %d to %d"
            raise block.error(message % (name, instances, *spec.INSTANCES), "instances")
        given = self._tenants.get(project or "", 0) * IPUS_PER_MACHINE
        if given > ipus:
            message = "team '%s': the allocation of project '%s' has %d IPUs: raise 'ipus', or reduce the allocation"
            raise block.error(message % (name, project, given), "ipus")
        default = max(ipus // IPUS_PER_MACHINE, 1)
        return model.Team(name, ipus, namespace, project, default if instances is None else instances)

    def _place(self, block: Block, key: str, required: str, used: UniqueValues) -> str | None:
        """Return the namespace or project of a team, None when it has none. Raises PodError."""
        place: str | None = block.get(key)
        if not place:
            return None
        if self._top.get(required) is None:
            message = "team '%s': the POD has no key '%s': add it, or remove '%s'"
            raise block.error(message % (block["name"], required, key), key)
        used.take(place, "team '%s'" % block["name"], block.error("", key))
        return place
