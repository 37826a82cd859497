# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Content of the report of one tenant: its machines only. No I/O.

A report must not show other tenants. So the content is made again from the objects of the tenant, and other machines
have no names in it. Their places stay, because the places of IPUs count from the first machine of the cluster.
"""

from __future__ import annotations

import re
import typing as t
from collections import Counter

from .pods import Source

_HIDDEN = "hidden-%d"  # agents of others; reports never show them
_ENDS = ("a", "b", "found", "found_b")
_OTHERS = "a test of other machines"  # in the place of a failed test that is not one of the tenant
_WITHHELD = "A test found a fault that also concerns machines of others."

Object = dict[str, t.Any]
Reported = t.Mapping[str, t.Any]


def source(
    name: str,
    info: Reported,
    runs: t.Iterable[Reported],
    allocations: t.Sequence[Object],
    partitions: t.Sequence[Object],
) -> Source:
    """Return the content of the report of a tenant with these allocations and partitions.

    ``info`` and ``runs`` are the validated objects and tests of the whole controller. The report has no addresses of
    machines, because tenants have no access to them.
    """
    machines = frozenset(agent for allocation in allocations for agent in allocation["agents"] or ())
    hidden = _Hidden(machines)
    hidden.agents(each["id"] for each in info["agents"] or ())  # messages may name machines of other clusters
    clusters = [each for each in info["clusters"] or () if not machines.isdisjoint(each["agents"])]
    own_info = {
        "agents": [{**each, "host": None} for each in info["agents"] or () if each["id"] in machines],
        "clusters": [{**each, "agents": hidden.agents(each["agents"])} for each in clusters],
        "allocations": list(allocations),
        "partitions": list(partitions),
        "ipu_attributes": {agent: ipus for agent, ipus in (info["ipu_attributes"] or {}).items() if agent in machines},
    }
    own_clusters = [each["id"] for each in clusters]
    own_runs = [_run(run, hidden) for run in runs if run["cluster"] in own_clusters]
    return Source(None, own_info, own_runs, None, name, None, machines)


class _Hidden:
    """Replacement of the machines of others."""

    def __init__(self, machines: frozenset[str]) -> None:
        self.machines = machines
        self._names: dict[str, str] = {}

    def agents(self, agents: t.Iterable[str]) -> list[str]:
        """Return the agents, with placeholders for those of others."""
        return [
            agent if agent in self.machines else self._names.setdefault(agent, _HIDDEN % len(self._names))
            for agent in agents
        ]

    def text(self, text: str) -> str:
        """Replace a message that has the name of a hidden agent."""
        return _WITHHELD if self._names and re.search(self._pattern, text) else text

    @property
    def _pattern(self) -> str:
        return r"(?<![\w.-])(?:%s)(?![\w-])" % "|".join(map(re.escape, self._names))


def _run(run: Reported, hidden: _Hidden) -> Object:
    agents = hidden.agents(run.get("agents") or ())
    results = [_result(result, hidden) for result in run["results"]]
    passed = {result["test"] for result in results if result["ok"]}
    for result in results:
        if result["skipped_because"] in passed:
            result.update(ok=True, skipped_because=_OTHERS)
    ok = run["state"] == "finished" and all(result["ok"] for result in results)
    return {**run, "agents": agents, "results": results, "ok": ok, "error": None}


def _result(result: Reported, hidden: _Hidden) -> Object:
    """Return a result with the failures that concern the tenant. The numbers of the whole cluster are omitted."""
    failures = [_failure(each, hidden) for each in result["failures"] if _concerns(each, hidden.machines)]
    # A failed test without failures has no verdict on the machines of the tenant. One with failures of others only has.
    others = bool(result["failures"]) and not failures
    return {
        **result,
        "ok": result["ok"] or others,
        "passed": None,
        "total": None,
        "summary": [each["reason"] for each in failures],
        "disturbs": ["partitions"] if result["disturbs"] else [],
        "failures": failures,
        "versions": {
            component: {agent: version for agent, version in versions.items() if agent in hidden.machines}
            for component, versions in result["versions"].items()
        },
    }


def _concerns(failure: Reported, machines: frozenset[str]) -> bool:
    """Return whether a failure is one of a machine or cable of the tenant, or has no place.

    A cable has both ends at its machines.
    """
    if failure["a"]:
        return failure["a"]["agent"] in machines and failure["b"]["agent"] in machines
    if failure["agent"]:
        return failure["agent"] in machines
    return not failure["versions"] or _differs(failure["versions"], machines)


def _differs(versions: t.Mapping[str, str], machines: frozenset[str]) -> bool:
    """Return whether these machines have several versions, or one that fewer machines have than another."""
    counts = Counter(versions.values())
    own = {version for agent, version in versions.items() if agent in machines}
    return len(own) > 1 or any(counts[version] < max(counts.values()) for version in own)


def _failure(failure: Reported, hidden: _Hidden) -> Object:
    ends = {name: failure[name] for name in _ENDS}
    return {
        **failure,
        **{name: end if end and end["agent"] in hidden.machines else None for name, end in ends.items()},
        "reason": hidden.text(failure["reason"]),
        "versions": {agent: version for agent, version in failure["versions"].items() if agent in hidden.machines},
    }
