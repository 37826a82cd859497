# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling upgrade of IPU-Machines: which ones together, in which order, and which partitions stand in the way. Pure.

What is seen comes from the module vipu_info, with the rows that it returns. An IPU-Machine is known by the
name of its agent; ``names`` says what people call it. Nothing here remembers anything: what is done already
is told by the versions that the agents tell.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

Row = t.Mapping[str, t.Any]

IPUS_PER_MACHINE = 4
# "Virm version", "GWSW Version": lines of `vipu-admin get agent`, with the separators of all releases that were seen.
_VERSION_LINE = re.compile(r"^\W*(?P<component>[A-Za-z].*?) +[Vv]ersion\s*[:|]?\s+(?P<version>\S+)\W*$", re.MULTILINE)


@dataclass
class Domain:
    """IPU-Machines that may be down at the same time, by their agents."""

    name: str
    agents: list[str]
    partitions: set[str] = field(default_factory=set)


def told_versions(printed: str) -> dict[str, str]:
    """Component -> version from what ``vipu-admin get agent`` prints."""
    return {match["component"]: match["version"] for match in _VERSION_LINE.finditer(printed)}


def plan(
    seen: Row,
    names: t.Mapping[str, str],
    *,
    versions: t.Mapping[str, str],
    domain: str = "machine",
    domains: t.Mapping[str, t.Sequence[str]] | None = None,
    only: t.Sequence[str] = (),
    partitions: str = "refuse",
) -> dict[str, t.Any]:
    """The failure domains that are still to be upgraded, in their order.

    ``domain`` is ``machine`` or ``ild``; ``domains`` gives some of them by hand (name -> machines), before all
    others. ``only`` are the machines that are meant. ``partitions`` is ``refuse`` or ``interrupt``.

    Gives ``domains`` (each with ``name``, ``agents``, ``machines``, ``clusters``, ``partitions``), ``done`` (names
    of machines), ``clusters`` (of all machines that are meant) and ``problems``, sentences; with problems, nothing
    may be upgraded.
    """
    rack = _Rack(seen, names)
    problems: list[str] = []
    agents = rack.meant(only, problems) if only else list(rack.agents)
    if not versions:
        problems.append(
            "What is to be upgraded to is not known: say it with virm_agent_upgrade_versions, like {GWSW: 2.1.0}."
        )
    problems += rack.strangers(versions)
    pending = [agent for agent in agents if not rack.has(agent, versions)]
    if not only:
        problems += rack.lost(pending)
    made = rack.domains(pending, domain, domains or {}, problems)
    if partitions == "refuse":
        problems += rack.obstacles(pending)
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
        "done": [names.get(agent, agent) for agent in agents if agent not in pending],
        "clusters": rack.clusters_of(agents),
        "problems": problems,
    }


class _Rack:
    """What there is, asked in the words of the plan."""

    def __init__(self, seen: Row, names: t.Mapping[str, str]) -> None:
        self._seen = seen
        self._names = names
        self._clusters = {row["id"]: row for row in seen.get("clusters") or ()}
        self._allocations = {row["id"]: row for row in seen.get("allocations") or ()}
        self._partitions: list[Row] = list(seen.get("partitions") or ())
        found = {row["id"]: row for row in seen["agents"]}
        # As they stand in their clusters, the lowest in the rack first; then those that are in none.
        order = [agent for row in self._clusters.values() for agent in row["agents"] if agent in found]
        self.agents: dict[str, Row] = {agent: found[agent] for agent in dict.fromkeys([*order, *found])}

    def called(self, agent: str) -> str:
        name = self._names.get(agent, agent)
        return name if name == agent else "%s (agent %s)" % (name, agent)

    def meant(self, only: t.Sequence[str], problems: list[str]) -> list[str]:
        """The agents of machines that are named by machine or agent, in the order of the rack."""
        by_name = {name: agent for agent, name in self._names.items()}
        wanted = {by_name.get(each, each) for each in only}
        problems += [
            "There is no IPU-Machine '%s' with an agent at this controller: see 'vipu-admin list agents'." % each
            for each in sorted(wanted.difference(self.agents))
        ]
        return [agent for agent in self.agents if agent in wanted]

    def has(self, agent: str, versions: t.Mapping[str, str]) -> bool:
        told = self.agents[agent].get("versions") or {}
        return bool(versions) and all(told.get(component) == version for component, version in versions.items())

    def strangers(self, versions: t.Mapping[str, str]) -> list[str]:
        """A sentence for each component that no agent tells a version of."""
        known = sorted({component for row in self.agents.values() for component in row.get("versions") or ()})
        if not known:
            return []
        return [
            "No agent tells the version of '%s': in virm_agent_upgrade_versions, choose from %s."
            % (component, ", ".join(known))
            for component in versions
            if component not in known
        ]

    def lost(self, agents: t.Sequence[str]) -> list[str]:
        return [
            "%s is %s%s: bring it up before the upgrade, or upgrade it alone with virm_agent_upgrade_machines."
            % (self.called(agent), self.agents[agent]["state"], _because(self.agents[agent].get("reason")))
            for agent in agents
            if self.agents[agent]["state"] != "Up"
        ]

    def domains(
        self, pending: t.Sequence[str], kind: str, given: t.Mapping[str, t.Sequence[str]], problems: list[str]
    ) -> list[Domain]:
        """Those that have a machine that is pending, with these machines only."""
        made: dict[str, Domain] = {}
        placed: dict[str, str] = {}
        for name, machines in given.items():
            for agent in self.meant(machines, problems):
                if agent in placed:
                    problems.append(
                        "%s is in the failure domains '%s' and '%s': leave it in one."
                        % (self.called(agent), placed[agent], name)
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
                per_ild = _machines_per_ild(cluster)
                return "%s, IPU-Link domain %d" % (cluster["id"], list(cluster["agents"]).index(agent) // per_ild)
        return self._names.get(agent, agent)

    def clusters_of(self, agents: t.Collection[str]) -> list[str]:
        return [id for id, row in self._clusters.items() if set(agents).intersection(row["agents"])]

    def holders(self, partition: Row) -> list[str]:
        """The agents of the machines that a partition is on; all that it could be on when nobody tells."""
        cluster = self._clusters.get(partition.get("cluster") or "")
        if cluster and partition.get("ipus"):
            per_ild = _machines_per_ild(cluster)
            places = {ipu["ild"] * per_ild + ipu["topology_id"] // IPUS_PER_MACHINE for ipu in partition["ipus"]}
            return [agent for place, agent in enumerate(cluster["agents"]) if place in places]
        allocation = self._allocations.get(partition.get("allocation") or "") or cluster
        return list(allocation["agents"]) if allocation else list(self.agents)

    def partitions_on(self, agents: t.Collection[str]) -> set[str]:
        return {row["id"] for row in self._partitions if set(agents).intersection(self.holders(row))}

    def obstacles(self, agents: t.Collection[str]) -> list[str]:
        """A sentence for each partition that would be interrupted, and cannot move away."""
        sentences = []
        for row in self._partitions:
            on = [self._names.get(agent, agent) for agent in self.holders(row) if agent in agents]
            if on and not self._moves(row):
                reason = "has no free place to move to" if row.get("relocatable") else "may not move"
                sentences.append(
                    "Partition '%s' is on %s and %s: remove it, %s, or interrupt it with "
                    "virm_agent_upgrade_partitions=interrupt."
                    % (
                        row["id"],
                        _some(on),
                        reason,
                        "make room in allocation '%s'" % row.get("allocation")
                        if row.get("relocatable")
                        else "make it relocatable",
                    )
                )
        return sentences

    def _moves(self, partition: Row) -> bool:
        """Whether the controller moves it by itself when its machine goes down."""
        fits = (self._seen.get("fits") or {}).get(partition.get("allocation"), {})
        return bool(partition.get("relocatable")) and bool(fits.get(str(partition["size"])))


def _machines_per_ild(cluster: Row) -> int:
    return max(1, len(cluster["agents"]) // (cluster.get("num_ilds") or 1))


def _because(reason: str | None) -> str:
    return " (%s)" % reason.rstrip(".") if reason else ""


def _some(names: t.Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" and %d more" % (len(names) - 3) if len(names) > 3 else "")


def cut(config: t.Any, machines: t.Mapping[str, t.Collection[str]]) -> dict[str, t.Any]:
    """The configuration of rack_tool, with the entries of some machines only.

    ``machines`` is name -> addresses. An entry is a machine's when one of its values is the name or an address
    of it; all the rest stays as it is. Raises ValueError with the rest of a sentence.
    """
    if not isinstance(config, dict):
        raise ValueError("is no JSON object")  # noqa: TRY004 - what somebody wrote, and no slip of ours
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
