# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan of a rolling upgrade of IPU-Machines: failure domains, their order, and blocking partitions. No I/O.

The actual state is the result of the module vipu_info. An IPU-Machine is identified by the id of its agent; ``names``
maps agents to names of machines. There is no stored state: machines are up to date when their agents report the new
versions.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .used_machines import Row, agents_of, machines_per_ild

# "Virm version", "GWSW Version": lines of `vipu-admin get agent`, with the separators of all known releases.
_VERSION_LINE = re.compile(r"^\W*(?P<component>[A-Za-z].*?) +[Vv]ersion\s*[:|]?\s+(?P<version>\S+)\W*$", re.MULTILINE)


@dataclass
class Domain:
    """Failure domain: agents of IPU-Machines that may be down at the same time."""

    name: str
    agents: list[str]
    partitions: set[str] = field(default_factory=set)


def printed_versions(printed: str) -> dict[str, str]:
    """Return versions by component from the output of ``vipu-admin get agent``."""
    return {match["component"]: match["version"] for match in _VERSION_LINE.finditer(printed)}


def plan(
    seen: Row,
    names: t.Mapping[str, str],
    *,
    versions: t.Mapping[str, str],
    domain: str = "machine",
    domains: t.Mapping[str, t.Sequence[str]] | None = None,
    only: t.Sequence[str] = (),
    partitions: str = "keep",
) -> dict[str, t.Any]:
    """Return the failure domains to upgrade, in order.

    ``domain`` is ``machine`` or ``ild``. ``domains`` are explicit domains (machines by name), which come first.
    ``only`` selects machines. ``partitions`` is ``keep`` or ``interrupt``.

    The result has ``domains`` (each with ``name``, ``agents``, ``machines``, ``clusters``, ``partitions``),
    ``up_to_date`` (names of machines), ``clusters`` (of all selected machines) and ``problems`` (messages). With
    problems, nothing may be upgraded.
    """
    rack = _Rack(seen, names)
    problems: list[str] = []
    agents = rack.selected(only, problems) if only else list(rack.agents)
    if not versions:
        problems.append("The target versions are missing. Set virm_agent_upgrade_versions, for example {GWSW: 2.1.0}.")
    problems += rack.unknown_components(versions)
    pending = [agent for agent in agents if not rack.is_upgraded(agent, versions)]
    if not only:
        problems += rack.unavailable(pending)
    made = rack.domains(pending, domain, domains or {}, problems)
    if partitions == "keep":
        problems += rack.blocking_partitions(pending)
    return {
        "domains": [
            {
                "name": each.name,
                "agents": each.agents,
                "machines": [names.get(agent, agent) for agent in each.agents],
                "clusters": rack.clusters_of(each.agents),
                "partitions": sorted(rack.partitions_on(each.agents)),
            }
            for each in made
        ],
        "up_to_date": [names.get(agent, agent) for agent in agents if agent not in pending],
        "clusters": rack.clusters_of(agents),
        "problems": problems,
    }


class _Rack:
    """Actual state of the machines, with queries for the plan."""

    def __init__(self, seen: Row, names: t.Mapping[str, str]) -> None:
        self._seen = seen
        self._names = names
        self._clusters = {row["id"]: row for row in seen.get("clusters") or ()}
        self._partitions: list[Row] = list(seen.get("partitions") or ())
        found = {row["id"]: row for row in seen["agents"]}
        # In cabling order of their clusters, then those without a cluster.
        order = [agent for row in self._clusters.values() for agent in row["agents"] if agent in found]
        self.agents: dict[str, Row] = {agent: found[agent] for agent in dict.fromkeys([*order, *found])}

    def label(self, agent: str) -> str:
        name = self._names.get(agent, agent)
        return name if name == agent else "%s (agent %s)" % (name, agent)

    def selected(self, only: t.Sequence[str], problems: list[str]) -> list[str]:
        """Return the agents of machines given by machine or agent name, in the order of the rack."""
        by_name = {name: agent for agent, name in self._names.items()}
        chosen = {by_name.get(each, each) for each in only}
        problems += [
            "The controller has no agent of IPU-Machine '%s'. Check 'vipu-admin list agents'." % each
            for each in sorted(chosen.difference(self.agents))
        ]
        return [agent for agent in self.agents if agent in chosen]

    def is_upgraded(self, agent: str, versions: t.Mapping[str, str]) -> bool:
        actual = self.agents[agent].get("versions") or {}
        return bool(versions) and all(actual.get(component) == version for component, version in versions.items())

    def unknown_components(self, versions: t.Mapping[str, str]) -> list[str]:
        """Return a message for each component without a version on any agent."""
        known = sorted({component for row in self.agents.values() for component in row.get("versions") or ()})
        if not known:
            return []
        return [
            "No agent reports the version of '%s'. In virm_agent_upgrade_versions, choose from %s."
            % (component, ", ".join(known))
            for component in versions
            if component not in known
        ]

    def unavailable(self, agents: t.Sequence[str]) -> list[str]:
        return [
            "%s is %s%s. Repair it before the upgrade, or upgrade it alone with virm_agent_upgrade_machines."
            % (self.label(agent), self.agents[agent]["state"], _because(self.agents[agent].get("reason")))
            for agent in agents
            if self.agents[agent]["state"] != "Up"
        ]

    def domains(
        self, pending: t.Sequence[str], kind: str, given: t.Mapping[str, t.Sequence[str]], problems: list[str]
    ) -> list[Domain]:
        """Return the failure domains with pending machines, without their other machines."""
        made: dict[str, Domain] = {}
        placed: dict[str, str] = {}
        for name, machines in given.items():
            for agent in self.selected(machines, problems):
                if agent in placed:
                    problems.append(
                        "%s is in the failure domains '%s' and '%s'. Remove it from one of them."
                        % (self.label(agent), placed[agent], name)
                    )
                placed[agent] = name
        for agent in sorted(
            pending, key=lambda each: list(given).index(placed[each]) if each in placed else len(given)
        ):
            name = placed.get(agent) or self._domain(agent, kind)
            made.setdefault(name, Domain(name, [])).agents.append(agent)
        return list(made.values())

    def _domain(self, agent: str, kind: str) -> str:
        for cluster in self._clusters.values():
            if kind == "ild" and agent in cluster["agents"]:
                per_ild = machines_per_ild(cluster)
                return "%s, IPU-Link domain %d" % (cluster["id"], list(cluster["agents"]).index(agent) // per_ild)
        return self._names.get(agent, agent)

    def clusters_of(self, agents: t.Collection[str]) -> list[str]:
        return [id for id, row in self._clusters.items() if set(agents).intersection(row["agents"])]

    def partitions_on(self, agents: t.Collection[str]) -> set[str]:
        return {row["id"] for row in self._partitions if set(agents).intersection(agents_of(row, self._seen))}

    def blocking_partitions(self, agents: t.Collection[str]) -> list[str]:
        """Return a message for each partition that would be interrupted because it cannot move."""
        messages = []
        for row in self._partitions:
            on = [self._names.get(agent, agent) for agent in agents_of(row, self._seen) if agent in agents]
            if on and not self._moves(row):
                reason = "has no free place to move to" if row.get("relocatable") else "may not move"
                messages.append(
                    "Partition '%s' is on %s and %s. Remove it, %s, or interrupt it with "
                    "virm_agent_upgrade_partitions=interrupt."
                    % (
                        row["id"],
                        _shortened(on),
                        reason,
                        "make room in allocation '%s'" % row.get("allocation")
                        if row.get("relocatable")
                        else "make it relocatable",
                    )
                )
        return messages

    def _moves(self, partition: Row) -> bool:
        """Return whether the controller moves the partition when its machine goes down."""
        fits = (self._seen.get("fits") or {}).get(partition.get("allocation"), {})
        return bool(partition.get("relocatable")) and bool(fits.get(str(partition["size"])))


def _because(reason: str | None) -> str:
    return " (%s)" % reason.rstrip(".") if reason else ""


def _shortened(names: t.Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" and %d more" % (len(names) - 3) if len(names) > 3 else "")


def filter_machines(config: t.Any, machines: t.Mapping[str, t.Collection[str]]) -> dict[str, t.Any]:
    """Return the configuration of rack_tool with the entries of some machines only.

    ``machines`` has addresses by name. An entry belongs to a machine when one of its values is the name or an address
    of it. All other settings stay unchanged. Raises ValueError with the end of a message for users.
    """
    if not isinstance(config, dict):
        raise ValueError("is not a JSON object")  # noqa: TRY004 - user input, not a programming error
    found: set[str] = set()

    def kept(entry: t.Any) -> bool:
        values = {value for value in entry.values() if isinstance(value, str)}
        owners = {name for name, addresses in machines.items() if values.intersection([name, *addresses])}
        found.update(owners)
        return bool(owners)

    smaller = {
        key: [entry for entry in value if kept(entry)] if _is_list_of_objects(value) else value
        for key, value in config.items()
    }
    missing = [name for name in machines if name not in found]
    if missing:
        raise ValueError("has no entry for %s, by name or address" % ", ".join(missing))
    return smaller


def _is_list_of_objects(value: t.Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)
