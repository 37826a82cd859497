# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a technician has to do: from the failures of a run of cluster tests to a list without repetitions. Pure.

One mistake of a hand shows in several places, so causes are looked for: two cables that are exchanged
are one action, and so is a cable that fails three tests.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from . import recabling

Failure = dict[str, t.Any]
Port = dict[str, t.Any]

_SENTENCES = {
    recabling.REMOVE: "Take out the cable between %s and %s.",
    recabling.MOVE: "Move the cable in %s to %s.",
    recabling.EXCHANGE: "Exchange the cables in %s and %s.",
    recabling.CONNECT: "Connect %s and %s with a cable.",
}


class Action(t.NamedTuple):
    """One thing to do, and the cables that it is about: pairs of ports as ``key`` gives them."""

    text: str
    cables: tuple[tuple[str, str], ...] = ()


def name(port: Port) -> str:
    """A port as it is called in sentences."""
    return "%s %s port %s" % (port["agent"], port["kind"], port["port"])


def key(a: Port, b: Port) -> tuple[str, str]:
    """A cable by its two ends, in whatever order they are given."""
    first, second = sorted((name(a), name(b)))
    return first, second


def actions(run: t.Mapping[str, t.Any] | None) -> list[Action]:
    """What to do, in the order in which it is best done."""
    failures = [failure for result in (run or {}).get("results", ()) for failure in result["failures"]]
    found: list[Action] = []
    done: set[tuple[str, str]] = set()
    for step in (_silent, _recabled, _broken, _noisy):
        for action in step([each for each in failures if not _cable(each) or _cable(each) not in done]):
            found.append(action)
            done.update(action.cables)
    return found + _machines(failures)


def _cable(failure: Failure) -> tuple[str, str] | None:
    return key(failure["a"], failure["b"]) if failure["a"] and failure["b"] else None


def _silent(failures: list[Failure]) -> list[Action]:
    agents = dict.fromkeys(
        each["agent"] for each in failures if each["kind"] == "agent_unreachable" and each["agent"] and not each["a"]
    )
    return [Action("See why %s does not answer, and test again: nothing of it could be tested." % id) for id in agents]


def _recabled(failures: list[Failure]) -> list[Action]:
    """Cables that are in wrong ports or in none: what one mistake did to several of them is undone once."""
    wanted: dict[recabling.Pair, None] = {}
    actual: list[recabling.Pair] = []
    empty: set[recabling.Port] = set()
    found: list[Action] = []
    for each in failures:
        if not each["a"]:
            continue
        ends = _port(each["a"]), _port(each["b"])
        places = [each["found"], each["found_b"]]
        actual += [(end, _port(place)) for end, place in zip(ends, places, strict=True) if place]
        if any(places) or each["kind"] == "no_cable":
            wanted[ends] = None
            empty.update(end for end in ends if "no cable in %s %s port %s" % end in each["reason"])
        elif each["kind"] == "wrong_port":  # some controllers do not tell which
            text = "Find out where the cables in %s and %s lead, and connect these two."
            found.append(Action(text % (name(each["a"]), name(each["b"])), (_key(each),)))
    return [_action(step) for step in recabling.steps(wanted, actual, empty)] + found


def _action(step: recabling.Step) -> Action:
    one, other = ("%s %s port %s" % port for port in (step.one, step.other))
    cables = []
    for ends in step.cables:
        first, second = sorted("%s %s port %s" % end for end in ends)
        cables.append((first, second))
    return Action(_SENTENCES[step.verb] % (one, other), tuple(cables))


def _port(port: Port) -> recabling.Port:
    return port["agent"], port["kind"], port["port"]


def _key(failure: Failure) -> tuple[str, str]:
    return key(failure["a"], failure["b"])


def _broken(failures: list[Failure]) -> list[Action]:
    return [
        Action(
            "Reseat both ends of the cable between %s and %s; replace it if that does not help."
            % (name(each["a"]), name(each["b"])),
            (_key(each),),
        )
        for each in _once(failures)
        if each["kind"] in ("no_sync", "link_down")
    ]


def _noisy(failures: list[Failure]) -> list[Action]:
    worst: dict[tuple[str, str], Failure] = {}
    for each in failures:
        if each["kind"] == "corrected_errors" and each["a"]:
            before = worst.get(_key(each))
            if before is None or each["corrected_errors"] > before["corrected_errors"]:
                worst[_key(each)] = each
    return [
        Action(
            "Clean or replace the cable between %s and %s: its link corrected %d errors in one traffic test."
            % (name(each["a"]), name(each["b"]), each["corrected_errors"]),
            (cable,),
        )
        for cable, each in worst.items()
    ]


def _once(failures: list[Failure]) -> list[Failure]:
    """The first failure of each cable."""
    return list({_key(each): each for each in reversed(failures) if each["a"]}.values())[::-1]


def _machines(failures: list[Failure]) -> list[Action]:
    """What is wrong inside of machines, and with what runs on them."""
    texts: dict[str, None] = {}
    for each in failures:
        if each["link"] and not each["a"]:
            texts["Have %s serviced: its link %s inside of the machine fails." % (each["agent"], each["link"])] = None
        elif each["kind"] == "version":
            texts.update(dict.fromkeys(_versions(each)))
        elif each["kind"] == "pfc_classes":
            texts["Set priority flow control on %s: %s" % (each["agent"], each["reason"])] = None
        elif each["kind"] is None:
            texts["Look into what the controller says: %s" % each["reason"]] = None
    return [Action(text) for text in texts]


def _versions(failure: Failure) -> list[str]:
    """Those that differ from most, to what most have."""
    versions = failure["versions"]
    (usual, count), *others = Counter(versions.values()).most_common()
    if others and others[0][1] == count:
        return ["Bring %s to one version on all machines." % failure["component"]]
    found = []
    for version, _count in others:
        agents = sorted(agent for agent, other in versions.items() if other == version)
        found.append(
            "Bring %s of %s from %s to %s, as the others have it."
            % (failure["component"], ", ".join(agents), version, usual)
        )
    return found
