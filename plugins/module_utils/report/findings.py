# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of tests says of each cable of its cluster. Pure."""

from __future__ import annotations

import typing as t
from collections import Counter

from ..pod.topology import CableKind
from .ends import End, Pair, cable, end

# ``untested``: no test looked at it; ``untold``: one did and failed, and does not tell whether of this cable.
PASSED, FAILED, SKIPPED, UNTESTED, UNTOLD = "passed", "failed", "skipped", "untested", "untold"
WORDS = {UNTESTED: "not tested", UNTOLD: "not told"}  # for people, where it is another word

# The tests that look at a cable.
_TELLING = {
    CableKind.IPU_LINK: ("Cabling", "IPU-Link", "Traffic"),
    CableKind.GW_LINK: ("Sync-Link", "Cabling", "GW-Link"),
    CableKind.SYNC_LINK: ("Sync-Link",),
}


def summary(states: t.Iterable[str]) -> str:
    """How many there are of each."""
    return ", ".join("%d %s" % (count, WORDS.get(state, state)) for state, count in sorted(Counter(states).items()))


class Findings:
    """The verdicts on cables, which are named as in ``ends``."""

    def __init__(self, run: t.Mapping[str, t.Any] | None) -> None:
        """Without a run nothing was tested."""
        self.results = {result["test"]: result for result in (run or {}).get("results", ())}
        self._silent = {test: _silent(result) for test, result in self.results.items()}
        self._reasons: dict[Pair, dict[str, None]] = {}
        self._failed: set[Pair] = set()
        self._strays: dict[Pair, list[tuple[End, End]]] = {}
        seen: set[frozenset[End]] = set()
        for result in self.results.values():
            for failure in result["failures"]:
                pair = cable(failure)
                if pair is None:
                    continue
                self._reasons.setdefault(pair, {})[failure["reason"]] = None
                if failure["kind"] != "agent_unreachable":
                    self._failed.add(pair)
                for name, place in (("a", "found"), ("b", "found_b")):
                    if failure[place]:
                        stray = end(failure[name]), end(failure[place])
                        if frozenset(stray) not in seen:
                            seen.add(frozenset(stray))
                            self._strays.setdefault(pair, []).append(stray)

    def of(self, kind: CableKind, pair: Pair) -> tuple[str, str]:
        """State of a cable, and why in words."""
        if pair in self._reasons:
            return (FAILED if pair in self._failed else UNTESTED), " ".join(self._reasons[pair])
        told = [self.results[test] for test in _TELLING[kind] if test in self.results]
        skipped = {result["test"]: _because(result) for result in told if result["skipped"]}
        untold = [result["test"] for result in told if not result["skipped"] and not self._tells(result, pair)]
        passed = [result["test"] for result in told if result["test"] not in (*skipped, *untold)]
        words = ["passed %s." % " and ".join(passed)] if passed else []
        words += ["%s failed, and does not tell of this cable." % test for test in untold]
        words += ["%s was skipped%s." % item for item in skipped.items()]
        state = UNTOLD if untold else PASSED if passed else SKIPPED if skipped else UNTESTED
        return state, " ".join(words) or "not tested."

    def _tells(self, result: t.Mapping[str, t.Any], pair: Pair) -> bool:
        """Whether a cable that a test does not name passed it: not when it failed for reasons that nobody can read."""
        if any(place.agent in self._silent[result["test"]] for place in pair):
            return False
        failures = result["failures"]
        return bool(result["ok"] or (failures and all(_placed(failure) for failure in failures)))

    def strays(self, pair: Pair) -> list[tuple[End, End]]:
        """Where the cables that are in the ports of this one lead, from its port to another; each is told once."""
        return self._strays.get(pair, [])


def _silent(result: t.Mapping[str, t.Any]) -> set[str]:
    """The agents that did not answer a test."""
    return {each["agent"] for each in result["failures"] if each["kind"] == "agent_unreachable" and not each["a"]}


def _placed(failure: t.Mapping[str, t.Any]) -> bool:
    """Whether it is known where a failure is: at a cable, or inside of a machine."""
    return bool(cable(failure) or (failure["kind"] and failure["agent"]))


def _because(result: t.Mapping[str, t.Any]) -> str:
    if result["skipped_because"]:
        return ", because %s failed" % result["skipped_because"]
    if result["disturbs"]:
        return ", because it would disturb partitions"
    return ""
