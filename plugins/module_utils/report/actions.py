# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a technician has to do: from the failures of a run of cluster tests to a list without repetitions. Pure.

One mistake of a hand shows in several places, so causes are looked for: two cables that are exchanged
are one action, and so is a cable that fails three tests. Whatever is wrong has an action: what nothing
better is known of is at least handed on.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from . import recabling
from .ends import End, Pair, cable, end

Failure = dict[str, t.Any]

_SENTENCES = {
    recabling.REMOVE: "Take out the cable between %s and %s.",
    recabling.MOVE: "Move the cable in %s to %s.",
    recabling.EXCHANGE: "Exchange the cables in %s and %s.",
    recabling.CONNECT: "Connect %s and %s with a cable.",
}


class Action(t.NamedTuple):
    """One thing to do, and the cables that it is about."""

    text: str
    cables: tuple[Pair, ...] = ()


def actions(run: t.Mapping[str, t.Any] | None) -> list[Action]:
    """What to do, in the order in which it is best done."""
    results = (run or {}).get("results", ())
    failures = [failure for result in results for failure in result["failures"]]
    silent = _silent(failures)
    found = [Action("See why %s does not answer, and test again: nothing of it could be tested." % id) for id in silent]
    done: set[Pair | None] = set()
    for step in (_recabled, _broken, _noisy):
        for action in step([(pair, each) for each in failures if (pair := cable(each)) and pair not in done]):
            found.append(action)
            done.update(action.cables)
    rest = [each for each in failures if cable(each) not in done and not _explained(each, silent)]
    texts = [text for each in rest for text in _machine(each)]
    texts += [
        "See why the %s test failed, and test again: it does not tell." % result["test"]
        for result in results
        if not (result["ok"] or result["skipped"] or result["failures"])
    ]
    return found + [Action(text) for text in dict.fromkeys(texts)]


def _silent(failures: t.Iterable[Failure]) -> list[str]:
    """The agents that did not answer."""
    silences = (each for each in failures if each["kind"] == "agent_unreachable" and not cable(each))
    return list(dict.fromkeys(each["agent"] for each in silences if each["agent"]))


def _explained(failure: Failure, silent: t.Container[str]) -> bool:
    """Whether there is nothing to do but to see why an agent does not answer."""
    if failure["kind"] != "agent_unreachable":
        return False
    return any(place.agent in silent for place in cable(failure) or ()) or failure["agent"] in silent


def _recabled(failures: t.Iterable[tuple[Pair, Failure]]) -> list[Action]:
    """Cables that are in wrong ports or in none: what one mistake did to several of them is undone once."""
    wanted: dict[Pair, None] = {}
    actual: list[Pair] = []
    empty: set[End] = set()
    found: list[Action] = []
    for pair, each in failures:
        ends = end(each["a"]), end(each["b"])
        places = each["found"], each["found_b"]
        actual += [(one, end(place)) for one, place in zip(ends, places, strict=True) if place]
        if any(places) or each["kind"] == "no_cable":
            wanted[ends] = None
            empty.update(one for one, is_empty in zip(ends, (each["empty"], each["empty_b"]), strict=True) if is_empty)
        elif each["kind"] == "wrong_port":  # some controllers do not tell which
            found.append(Action("Find out where the cables in %s and %s lead, and connect these two." % ends, (pair,)))
    return [_action(step) for step in recabling.steps(wanted, actual, empty)] + found


def _action(step: recabling.Step) -> Action:
    return Action(_SENTENCES[step.verb] % (step.one, step.other), step.cables)


def _broken(failures: t.Iterable[tuple[Pair, Failure]]) -> list[Action]:
    first = {pair: end(each["a"]) for pair, each in failures if each["kind"] in ("no_sync", "link_down")}
    return [
        Action(
            "Reseat both ends of the cable between %s and %s; replace it if that does not help." % _from(a, pair),
            (pair,),
        )
        for pair, a in first.items()
    ]


def _noisy(failures: t.Iterable[tuple[Pair, Failure]]) -> list[Action]:
    most: dict[Pair, tuple[int, End]] = {}
    for pair, each in failures:
        if each["kind"] == "corrected_errors":
            most[pair] = max(most.get(pair, (0, end(each["a"]))), (each["corrected_errors"] or 0, end(each["a"])))
    return [
        Action(
            "Clean or replace the cable between %s and %s: its link corrected %s errors in one traffic test."
            % (*_from(a, pair), errors or "too many"),
            (pair,),
        )
        for pair, (errors, a) in most.items()
    ]


def _from(one: End, pair: Pair) -> Pair:
    """A cable, beginning with this end: the order in which results have them is that of the rack."""
    return pair if pair[0] == one else (pair[1], pair[0])


def _machine(failure: Failure) -> list[str]:
    """What is wrong inside of a machine, or with what runs on it, or nobody knows where."""
    agent, kind, reason = failure["agent"], failure["kind"], failure["reason"]
    if agent and not failure["a"]:
        if failure["link"]:
            return ["Have %s serviced: its link %s inside of the machine fails." % (agent, failure["link"])]
        if kind == "link_down":
            return ["Have %s serviced: %s" % (agent, reason or "links inside of the machine are missing.")]
        if kind == "pfc_classes":
            return ["Set priority flow control on %s: %s" % (agent, reason or "not all classes are on.")]
    if kind == "version" and failure["component"] and len(set(failure["versions"].values())) > 1:
        return _versions(failure)
    return ["Look into what the controller says: %s" % (reason or "something is wrong, and it does not tell what.")]


def _versions(failure: Failure) -> list[str]:
    """Those that differ from most, to what most have."""
    versions = failure["versions"]
    (usual, count), *others = Counter(versions.values()).most_common()
    if others[0][1] == count:
        return ["Bring %s to one version on all machines." % failure["component"]]
    found = []
    for version, _count in others:
        agents = sorted(agent for agent, other in versions.items() if other == version)
        found.append(
            "Bring %s of %s from %s to %s, as the others have it."
            % (failure["component"], ", ".join(agents), version, usual)
        )
    return found
