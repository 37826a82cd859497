# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions for a technician, derived from the failures of runs of cluster tests, without duplicates. No I/O.

One cabling error causes several failures, so the actions address causes. Two exchanged cables are one action, and so
is a cable that fails three tests. Every failure has an action; unknown failures are passed on as reported.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from ..vipu.cluster_test.cable_names import cable_name, link_name
from ..vipu.cluster_test.failures import unreachable_reason
from . import recabling
from .chassis_ports import ChassisPort, Pair, cable, port_of

Failure = dict[str, t.Any]

_SENTENCES = {
    recabling.REMOVE: "Remove the cable between %s and %s.",
    recabling.MOVE: "Move the cable in %s to %s.",
    recabling.EXCHANGE: "Exchange the cables in %s and %s.",
    recabling.CONNECT: "Connect %s and %s with a cable.",
}


class Action(t.NamedTuple):
    """One action with the affected cables."""

    text: str
    cables: tuple[Pair, ...] = ()


def of_runs(runs: t.Iterable[t.Mapping[str, t.Any]]) -> list[Action]:
    """Return the actions of several runs, each once."""
    return list(dict.fromkeys(action for run in runs for action in actions(run)))


def actions(run: t.Mapping[str, t.Any]) -> list[Action]:
    """Return the actions of one run in the recommended order."""
    results = run["results"]
    failures = [failure for result in results for failure in result["failures"]]
    silent = _silent(failures)
    found = [
        Action(
            "Find out why %s does not respond, and test again. Its cables were not tested.%s"
            % (id, " The controller reports: %s." % reason if reason else "")
        )
        for id, reason in silent.items()
    ]
    done: set[Pair | None] = set()
    for step in (_recabled, _broken, _noisy):
        for action in step([(pair, each) for each in failures if (pair := cable(each)) and pair not in done]):
            found.append(action)
            done.update(action.cables)
    rest = [each for each in failures if cable(each) not in done and not _explained(each, silent)]
    texts = [text for each in rest for text in _machine(each)]
    texts += [
        "Find out why the %s test failed, and test again. It reported no cause." % result["test"]
        for result in results
        if not (result["ok"] or result["skipped"] or result["failures"])
    ]
    return found + [Action(text) for text in dict.fromkeys(texts)]


def _silent(failures: t.Iterable[Failure]) -> dict[str, str]:
    """Return the agents that did not respond, with the first reason. It is empty if the controller reported none."""
    found: dict[str, str] = {}
    for each in failures:
        if each["kind"] == "agent_unreachable" and each["agent"] and not cable(each):
            found[each["agent"]] = found.get(each["agent"]) or unreachable_reason(each)
    return found


def _explained(failure: Failure, silent: t.Container[str]) -> bool:
    """Return whether an agent that does not respond explains the failure."""
    if failure["kind"] != "agent_unreachable":
        return False
    return any(place.agent in silent for place in cable(failure) or ()) or failure["agent"] in silent


def _recabled(failures: t.Iterable[tuple[Pair, Failure]]) -> list[Action]:
    """Return the actions for cables in wrong ports or without a cable, one per cabling error."""
    desired: dict[Pair, None] = {}
    actual: list[Pair] = []
    empty: set[ChassisPort] = set()
    found: list[Action] = []
    for pair, each in failures:
        ends = port_of(each["a"]), port_of(each["b"])
        places = each["found"], each["found_b"]
        actual += [(one, port_of(place)) for one, place in zip(ends, places, strict=True) if place]
        if any(places) or each["kind"] == "no_cable":
            desired[ends] = None
            empty.update(one for one, is_empty in zip(ends, (each["empty"], each["empty_b"]), strict=True) if is_empty)
        elif each["kind"] == "wrong_port":  # some controllers do not report the other ports
            found.append(
                Action("Find out where the cables in %s and %s lead, and connect these two ports." % ends, (pair,))
            )
    return [_action(step) for step in recabling.steps(desired, actual, empty)] + found


def _action(step: recabling.Step) -> Action:
    return Action(_SENTENCES[step.verb] % (step.one, step.other), step.cables)


def _broken(failures: t.Iterable[tuple[Pair, Failure]]) -> list[Action]:
    first = {pair: port_of(each["a"]) for pair, each in failures if each["kind"] in ("no_sync", "link_down")}
    return [
        Action(
            "Reseat both ends of the cable %s; replace it if that does not help." % cable_name(*_starting_at(a, pair)),
            (pair,),
        )
        for pair, a in first.items()
    ]


def _noisy(failures: t.Iterable[tuple[Pair, Failure]]) -> list[Action]:
    most: dict[Pair, tuple[int, ChassisPort]] = {}
    for pair, each in failures:
        if each["kind"] == "corrected_errors":
            most[pair] = max(
                most.get(pair, (0, port_of(each["a"]))), (each["corrected_errors"] or 0, port_of(each["a"]))
            )
    return [
        Action(
            "Clean or replace the cable %s: its link corrected %s errors in one traffic test."
            % (cable_name(*_starting_at(a, pair)), errors or "too many"),
            (pair,),
        )
        for pair, (errors, a) in most.items()
    ]


def _starting_at(one: ChassisPort, pair: Pair) -> Pair:
    """Return the cable with this end first, because results list ends in the order of the rack."""
    return pair if pair[0] == one else (pair[1], pair[0])


def _machine(failure: Failure) -> list[str]:
    """Return the actions for failures inside a machine, of its software, or at an unknown place."""
    agent, kind, reason = failure["agent"], failure["kind"], failure["reason"]
    if agent and not failure["a"]:
        if failure["link"]:
            return ["Request service for %s: its internal link %s fails." % (agent, link_name(agent, failure["link"]))]
        if kind == "link_down":
            return ["Request service for %s: %s" % (agent, reason or "internal links are missing.")]
        if kind == "pfc_classes":
            return ["Set priority flow control on %s: %s" % (agent, reason or "it is not enabled for all classes.")]
    if kind == "version" and failure["component"] and len(set(failure["versions"].values())) > 1:
        return _versions(failure)
    return ["Investigate the report of the controller: %s" % (reason or "a test failed without a cause.")]


def _versions(failure: Failure) -> list[str]:
    """Return the actions that bring minority versions to the version of the majority."""
    versions = failure["versions"]
    (usual, count), *others = Counter(versions.values()).most_common()
    if others[0][1] == count:
        return ["Install the same version of %s on all machines." % failure["component"]]
    found = []
    for version, _count in others:
        agents = sorted(agent for agent, other in versions.items() if other == version)
        found.append(
            "Change %s of %s from version %s to %s, as on the other machines."
            % (failure["component"], ", ".join(agents), version, usual)
        )
    return found
