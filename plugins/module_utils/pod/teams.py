# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the key ``teams`` in pod.yml, and the quotas of V-IPU, Kubernetes and OpenStack from it."""

from __future__ import annotations

import typing as t

from ..vipu.object_rules import IPUS_PER_MACHINE
from . import model, spec
from .addresses import UniqueValues
from .mistakes import LeftOut, Mistakes
from .source import Block


def read(
    top: Block, racks: t.Iterable[model.Rack], cloud: model.Cloud | None, mistakes: Mistakes, left_out: LeftOut
) -> tuple[model.Team, ...]:
    """Return the teams, and record their mistakes."""
    certain = not left_out.machines and left_out.unnamed.isdisjoint(("rack", "machine"))
    reader = _Reader(top, sum(len(rack.machines) for rack in racks) if certain else None, cloud, mistakes)
    return tuple(reader.team(block) for block in spec.POD.children(top, "teams", mistakes))


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

    def __init__(self, top: Block, machines: int | None, cloud: model.Cloud | None, mistakes: Mistakes) -> None:
        """``machines`` is None if their number is unknown."""
        self._top = top
        self._mistakes = mistakes
        self._total = None if machines is None else machines * IPUS_PER_MACHINE
        self._tenants = {tenant.project: len(tenant.machines) for tenant in cloud.tenants} if cloud else {}
        self._names = UniqueValues("team")
        self._namespaces, self._projects = UniqueValues("namespace"), UniqueValues("project")

    def team(self, block: Block) -> model.Team:
        """Return a team, and record its mistakes."""
        name, ipus, namespace, project, instances = block["name"], block["ipus"], None, None, block.get("instances")
        if "name" not in block.invalid:
            with self._mistakes.collect():
                self._names.take(name, None, block.error("", "name"))
        with self._mistakes.collect():
            namespace = self._place(block, "namespace", "kubernetes", self._namespaces)
        with self._mistakes.collect():
            project = self._place(block, "project", "openstack", self._projects)
        if instances is not None and not block.get("project") and "project" not in block.invalid:
            message = "team '%s': 'instances' limits the VMs of a project: set 'project', or remove 'instances'"
            self._mistakes.add(block.error(message % name, "instances"))
        if ipus is not None:
            with self._mistakes.collect():
                self._check_quota(block, name, ipus, project)
        default = max((ipus or 0) // IPUS_PER_MACHINE, 1)
        return model.Team(name or "", ipus or 0, namespace, project, default if instances is None else instances)

    def _check_quota(self, block: Block, name: str, ipus: int, project: str | None) -> None:
        """Reject a quota of more IPUs than the POD has, or of fewer than the project has."""
        if ipus < 1 or (self._total is not None and ipus > self._total):
            limits = "at least 1 IPU" if self._total is None else "1 to %d IPUs, the IPUs of the POD" % self._total
            raise block.error("team '%s': the quota must be %s, not %d" % (name, limits, ipus), "ipus")
        given = self._tenants.get(project or "", 0) * IPUS_PER_MACHINE
        if given > ipus:
            message = "team '%s': the allocation of project '%s' has %d IPUs: raise 'ipus', or reduce the allocation"
            raise block.error(message % (name, project, given), "ipus")

    def _place(self, block: Block, key: str, required: str, used: UniqueValues) -> str | None:
        """Return the namespace or project of a team, None when it has none. Raises PodError."""
        place: str | None = block.get(key)
        if not place:
            return None
        if self._top.get(required) is None and required not in self._top.invalid:
            message = "team '%s': the POD has no key '%s': add it, or remove '%s'"
            raise block.error(message % (block["name"], required, key), key)
        used.take(place, "team '%s'" % block["name"], block.error("", key))
        return place
