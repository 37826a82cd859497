# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of tests says of each cable of its cluster. Pure."""

from __future__ import annotations

import typing as t

from ..pod.topology import CableKind
from . import actions

PASSED, FAILED, SKIPPED, UNTESTED = "passed", "failed", "skipped", "untested"
# The tests that look at a cable.
_TELLING = {
    CableKind.IPU_LINK: ("Cabling", "IPU-Link", "Traffic"),
    CableKind.GW_LINK: ("Sync-Link", "Cabling", "GW-Link"),
    CableKind.SYNC_LINK: ("Sync-Link",),
}

End = tuple[str, str, int]  # agent, kind, port


class Findings:
    """The verdicts on cables, which are named as ``actions.key`` does."""

    def __init__(self, run: t.Mapping[str, t.Any] | None) -> None:
        """Without a run nothing was tested."""
        self.results = {result["test"]: result for result in (run or {}).get("results", ())}
        self._reasons: dict[tuple[str, str], dict[str, None]] = {}
        self._failed: set[tuple[str, str]] = set()
        self._strays: dict[tuple[str, str], list[tuple[End, End]]] = {}
        seen: set[frozenset[End]] = set()
        for result in self.results.values():
            for failure in result["failures"]:
                if not (failure["a"] and failure["b"]):
                    continue
                cable = actions.key(failure["a"], failure["b"])
                self._reasons.setdefault(cable, {})[failure["reason"]] = None
                if failure["kind"] != "agent_unreachable":
                    self._failed.add(cable)
                for end, place in (("a", "found"), ("b", "found_b")):
                    if failure[place]:
                        pair = _end(failure[end]), _end(failure[place])
                        if frozenset(pair) not in seen:
                            seen.add(frozenset(pair))
                            self._strays.setdefault(cable, []).append(pair)

    def of(self, kind: CableKind, cable: tuple[str, str]) -> tuple[str, str]:
        """State of a cable, and why in words."""
        if cable in self._reasons:
            return (FAILED if cable in self._failed else UNTESTED), " ".join(self._reasons[cable])
        told = [self.results[test] for test in _TELLING[kind] if test in self.results]
        passed = [result["test"] for result in told if not result["skipped"]]
        skipped = {result["test"]: _because(result) for result in told if result["skipped"]}
        words = []
        if passed:
            words.append("passed %s." % " and ".join(passed))
        words += ["%s was skipped%s." % item for item in skipped.items()]
        state = PASSED if passed else SKIPPED if skipped else UNTESTED
        return state, " ".join(words) or "not tested."

    def strays(self, cable: tuple[str, str]) -> list[tuple[End, End]]:
        """Where the cables that are in the ports of this one lead, from its port to another; each is told once."""
        return self._strays.get(cable, [])


def _because(result: t.Mapping[str, t.Any]) -> str:
    if result["skipped_because"]:
        return ", because %s failed" % result["skipped_because"]
    if result["disturbs"]:
        return ", because it would disturb partitions"
    return ""


def _end(port: t.Mapping[str, t.Any]) -> End:
    return port["agent"], port["kind"], port["port"]
