# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of a description of AWX before any request. No I/O."""

from __future__ import annotations

import difflib
import typing as t

from ansible_collections.openipu.pod.plugins.plugin_utils.awx.kinds import (
    BUILT_IN,
    KINDS,
    STARTED_BY_NODES,
    TEMPLATES,
    Kind,
    describe,
    identity,
    names,
)

Object = dict[str, t.Any]


class Entry(t.NamedTuple):
    """One entry of the description and the place where it was read."""

    kind: Kind
    values: Object
    place: str

    @property
    def absent(self) -> bool:
        """True for an entry that removes its object."""
        return self.values.get("state") == "absent"


def mistakes(entries: t.Sequence[Entry], existing: t.Mapping[str, t.Sequence[str]]) -> list[str]:
    """Return one line for each mistake: place, object, cause.

    ``existing``: names of objects that AWX has and the description may refer to, by variable.
    """
    found = []
    defined: dict[str, set[str]] = {name: set(BUILT_IN.get(name, ())) for name in (*KINDS, *BUILT_IN)}
    for variable, extra in existing.items():
        defined.setdefault(variable, set()).update(extra)
    for entry in entries:
        if "name" in entry.values and not entry.absent:
            defined[entry.kind.variable].add(str(entry.values["name"]))
    defined[TEMPLATES] = set().union(*(defined[variable] for variable in STARTED_BY_NODES.values()))
    seen: dict[tuple[str, ...], str] = {}
    for entry in entries:
        label = f"{entry.place}, {describe(entry.kind, entry.values)}"
        found += [f"{label}: {cause}" for cause in _causes(entry, defined)]
        key = (entry.kind.variable, *identity(entry.kind, entry.values))
        if key in seen:
            found.append(f"{label}: described twice, first at {seen[key]}")
        seen.setdefault(key, entry.place)
    return found


def _causes(entry: Entry, defined: t.Mapping[str, t.AbstractSet[str]]) -> t.Iterator[str]:
    kind, values = entry.kind, entry.values
    for option in sorted(set(values) - kind.known):
        yield f"unknown option '{option}'{_hint(option, kind.known)}"
    for option in kind.required:
        if values.get(option) in (None, "") and not (entry.absent and option != "name"):
            yield f"option '{option}' is missing"
    if values.get("state", "present") not in ("present", "absent"):
        yield "state is '{}', but must be present or absent".format(values["state"])
    if entry.absent:
        return
    for option, variable in kind.references.items():
        for name in names(values.get(option)):
            yield from _reference(option, name, variable, defined)
    if kind.variable == "controller_workflows":
        yield from _nodes(values.get("workflow_nodes") or [], defined)


def _reference(option: str, name: str, variable: str, defined: t.Mapping[str, t.AbstractSet[str]]) -> t.Iterator[str]:
    if name not in defined.get(variable, ()):
        what = "no template" if variable == TEMPLATES else f"{variable} has no entry"
        yield f"{option} names '{name}', but {what} of that name{_hint(name, defined.get(variable, ()))}"


def _hint(name: str, known: t.Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f". Did you mean '{close[0]}'?" if close else ""


def _nodes(nodes: t.Any, defined: t.Mapping[str, t.AbstractSet[str]]) -> t.Iterator[str]:
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
        yield "workflow_nodes is not a list of dictionaries"
        return
    identifiers = [str(node.get("identifier") or "") for node in nodes]
    for index, node in enumerate(nodes):
        label = f"node '{identifiers[index]}'" if identifiers[index] else f"node {index + 1}"
        if not identifiers[index]:
            yield f"{label} has no identifier"
        elif identifiers.index(identifiers[index]) < index:
            yield f"{label} is described twice"
        started = node.get("unified_job_template") or {}
        kind = started.get("type")
        if not started.get("name") or kind not in (*STARTED_BY_NODES, "workflow_approval"):
            yield "{}: unified_job_template needs name and type ({})".format(
                label,
                ", ".join((*STARTED_BY_NODES, "workflow_approval")),
            )
        elif kind in STARTED_BY_NODES:
            for cause in _reference("unified_job_template", started["name"], STARTED_BY_NODES[kind], defined):
                yield f"{label}: {cause}"
        for outcome in ("success_nodes", "failure_nodes", "always_nodes"):
            for target in (node.get("related") or {}).get(outcome) or []:
                if target.get("identifier") not in identifiers:
                    yield "{}: {} names the node '{}', which does not exist".format(
                        label,
                        outcome,
                        target.get("identifier"),
                    )
