# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts of a run of tests on each cable of its cluster. No I/O."""

from __future__ import annotations

import typing as t
from collections import Counter

from ..pod.topology import CableKind
from .chassis_ports import ChassisPort, Pair, cable, port_of

# ``untested``: no test covered the cable; ``unknown``: a test failed without a verdict on this cable.
PASSED, FAILED, SKIPPED, UNTESTED, UNKNOWN = "passed", "failed", "skipped", "untested", "unknown"
WORDS = {UNTESTED: "not tested"}  # displayed words, where different

# The tests that cover a cable.
_COVERING = {
    CableKind.IPU_LINK: ("Cabling", "IPU-Link", "Traffic"),
    CableKind.GW_LINK: ("Sync-Link", "Cabling", "GW-Link"),
    CableKind.SYNC_LINK: ("Sync-Link",),
}


def summary(states: t.Iterable[str]) -> str:
    """Return the number of each state as text."""
    return ", ".join("%d %s" % (count, WORDS.get(state, state)) for state, count in sorted(Counter(states).items()))


class Findings:
    """Verdicts on cables, which are identified as in ``chassis_ports``."""

    def __init__(self, run: t.Mapping[str, t.Any] | None) -> None:
        """``run`` is None when there was no test."""
        self.results = {result["test"]: result for result in (run or {}).get("results", ())}
        self._silent = {test: _silent(result) for test, result in self.results.items()}
        self._reasons: dict[Pair, dict[str, None]] = {}
        self._failed: set[Pair] = set()
        self._strays: dict[Pair, list[tuple[ChassisPort, ChassisPort]]] = {}
        seen: set[frozenset[ChassisPort]] = set()
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
                        stray = port_of(failure[name]), port_of(failure[place])
                        if frozenset(stray) not in seen:
                            seen.add(frozenset(stray))
                            self._strays.setdefault(pair, []).append(stray)

    def of(self, kind: CableKind, pair: Pair) -> tuple[str, str]:
        """Return the state of a cable and its cause as text."""
        if pair in self._reasons:
            return (FAILED if pair in self._failed else UNTESTED), " ".join(self._reasons[pair])
        covering = [self.results[test] for test in _COVERING[kind] if test in self.results]
        skipped = {result["test"]: _because(result) for result in covering if result["skipped"]}
        unknown = [
            result["test"] for result in covering if not result["skipped"] and not self._has_verdict(result, pair)
        ]
        passed = [result["test"] for result in covering if result["test"] not in (*skipped, *unknown)]
        words = ["passed %s." % " and ".join(passed)] if passed else []
        words += ["%s failed without a verdict on this cable." % test for test in unknown]
        words += ["%s was skipped%s." % item for item in skipped.items()]
        state = UNKNOWN if unknown else PASSED if passed else SKIPPED if skipped else UNTESTED
        return state, " ".join(words) or "not tested."

    def _has_verdict(self, result: t.Mapping[str, t.Any], pair: Pair) -> bool:
        """Return whether the test has a verdict on a cable without failures.

        It has none for cables of agents that did not respond, and none when the test failed at unknown places.
        """
        if any(place.agent in self._silent[result["test"]] for place in pair):
            return False
        failures = result["failures"]
        return bool(result["ok"] or (failures and all(_placed(failure) for failure in failures)))

    def strays(self, pair: Pair) -> list[tuple[ChassisPort, ChassisPort]]:
        """Return where misplaced cables in the ports of this one lead, from its port to another, each once."""
        return self._strays.get(pair, [])


def _silent(result: t.Mapping[str, t.Any]) -> set[str]:
    """Return the agents that did not respond during a test."""
    return {each["agent"] for each in result["failures"] if each["kind"] == "agent_unreachable" and not each["a"]}


def _placed(failure: t.Mapping[str, t.Any]) -> bool:
    """Return whether the place of a failure is known: at a cable or inside a machine."""
    return bool(cable(failure) or (failure["kind"] and failure["agent"]))


def _because(result: t.Mapping[str, t.Any]) -> str:
    if result["skipped_because"]:
        return ", because %s failed" % result["skipped_because"]
    if result["disturbs"]:
        return ", because it would disturb partitions"
    return ""
