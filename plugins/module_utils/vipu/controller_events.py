# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events for rules, from the objects of a controller.

The stream of a controller has objects, not what happened to them. ``Tracker`` compares their states with the
previous ones, and returns each change once. Its state can be stored, so this also holds across restarts. No I/O.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass

from .untemplated import untemplated

Object = dict[str, t.Any]
Event = dict[str, t.Any]

STATE_VERSION = 1
ACTIVE, ERROR = "ACTIVE", "ERROR"
UP, DOWN = "Up", "Down"
_ENDED = frozenset({"finished", "stopped", "aborted"})
_LONGEST_LIST = 50  # reasons of failures in an event


@dataclass
class Condition:
    """State of an object since a time. ``reports``: number of events that reported it as lost or stuck."""

    state: str
    since: float
    reports: int = 0


def _same_deployment(name: str, other: str) -> bool:
    """Return whether two names of controllers are for the same API, and have an address in common."""
    (addresses, _slash, api), (others, _slash, other_api) = name.partition("/"), other.partition("/")
    return api == other_api and not {*addresses.split(",")}.isdisjoint(others.split(","))


class Tracker:
    """Last known states of the partitions, agents and cluster tests of a controller.

    Times are in seconds since 1970, because they stay valid after a restart. The first states are the base line: only
    failed objects are reported.
    """

    def __init__(
        self, controller: str, lost_seconds: float, stuck_seconds: float, saved: t.Mapping[str, t.Any] | None = None
    ) -> None:
        """``controller`` is ``ADDRESS/API``, or with several controllers of one deployment ``ADDRESS,ADDRESS/API``.

        ``saved`` is the result of ``state`` before a restart. Raises ValueError when it is of another controller.
        """
        self.controller = controller
        self._lost_seconds, self._stuck_seconds = lost_seconds, stuck_seconds
        self.revision = 0
        self._partitions: dict[str, Condition] = {}
        self._agents: dict[str, Condition] = {}
        self._test = ""
        self._agents_known = self._test_known = False  # whether there is a base line
        if saved is not None:
            self._load(saved)

    def state(self) -> Object:
        """Return the state for a restart, as data for JSON."""
        return {
            "version": STATE_VERSION,
            "controller": self.controller,
            "revision": self.revision,
            "partitions": {id: asdict(each) for id, each in sorted(self._partitions.items())},
            "agents": {id: asdict(each) for id, each in sorted(self._agents.items())},
            "agents_known": self._agents_known,
            "test": self._test,
            "test_known": self._test_known,
        }

    def _load(self, saved: t.Mapping[str, t.Any]) -> None:
        try:
            if saved["version"] != STATE_VERSION:
                raise ValueError("its version %s is unknown" % saved["version"])
            if not _same_deployment(str(saved["controller"]), self.controller):
                raise ValueError("it belongs to the controller %s" % saved["controller"])
            self.revision = int(saved["revision"])
            self._partitions = {id: Condition(**each) for id, each in saved["partitions"].items()}
            self._agents = {id: Condition(**each) for id, each in saved["agents"].items()}
            self._agents_known = bool(saved["agents_known"])
            self._test, self._test_known = str(saved["test"]), bool(saved["test_known"])
        except (KeyError, TypeError, AttributeError):
            raise ValueError("it has an unknown structure") from None

    def partitions(self, changes: t.Iterable[Object], revision: int, now: float, snapshot: bool = False) -> list[Event]:
        """Apply one complete step of the stream. ``changes``: results of ``objects.event``.

        ``snapshot``: the changes are all partitions at this revision, so missing ones are removed.
        """
        first = self.revision == 0 and not self._partitions
        found: list[Event] = []
        seen: set[str] = set()
        for change in changes:
            if change["kind"] != "partition":
                continue
            id = change["id"]
            if change["object"] is None:
                found += self._removed(id, change["revision"], now)
                continue
            seen.add(id)
            found += self._partition(id, change, now, first)
        if snapshot:
            for id in sorted(self._partitions.keys() - seen):
                found += self._removed(id, revision, now)
        self.revision = revision
        return found

    def _partition(self, id: str, change: Object, now: float, first: bool) -> list[Event]:
        state, before = change["object"]["state"], self._partitions.get(id)
        if before is None:
            self._partitions[id] = Condition(state, now)
            if first and state != ERROR:
                return []
        elif before.state == state:
            return []
        elif ACTIVE in (before.state, state):
            self._partitions[id] = Condition(state, now)
        else:
            before.state = state  # neither was usable: the time of the failure stays
        type = {ACTIVE: "partition_ready", ERROR: "partition_error"}.get(state)
        if type is None:
            return []
        return [self._event(type, "partition", id, change["revision"], now, change["object"])]

    def _removed(self, id: str, revision: int, now: float) -> list[Event]:
        if self._partitions.pop(id, None) is None:
            return []
        return [self._event("partition_removed", "partition", id, revision, now, {"id": id})]

    def agents(self, agents: t.Iterable[Object], now: float) -> list[Event]:
        """Compare all agents, results of ``objects.agent``. Removed agents cause no event.

        An agent in the state Unknown keeps its previous one: a controller that starts has not reached it yet.
        """
        found: list[Event] = []
        seen: set[str] = set()
        for agent in agents:
            id, state = agent["id"], agent["state"]
            seen.add(id)
            before = self._agents.get(id)
            if state not in (UP, DOWN) or (before is not None and before.state == state):
                continue
            self._agents[id] = Condition(state, now)
            if state == DOWN or self._agents_known:
                type = "agent_down" if state == DOWN else "agent_up"
                found.append(self._event(type, "agent", id, int(now * 1000), now, agent))
        for id in self._agents.keys() - seen:
            del self._agents[id]
        self._agents_known = True
        return found

    def test(self, run: Object, now: float) -> list[Event]:
        """Compare the last cluster test, a result of ``objects.test_run``."""
        first, self._test_known = not self._test_known, True
        if run["state"] not in _ENDED:
            return []
        key = "%s/%s" % (run["run_id"], run["started"])
        if key == self._test:
            return []
        self._test = key
        if first:
            return []
        failed = [result for result in run["results"] if not (result["ok"] or result["skipped"])]
        reasons = [failure["reason"] for result in failed for failure in result["failures"]]
        summary = {
            **{name: run[name] for name in ("run_id", "cluster", "state", "ok", "error", "started", "ended")},
            "failed_tests": [result["test"] for result in failed],
            "failures": len(reasons),
            "reasons": list(dict.fromkeys(reasons))[:_LONGEST_LIST],
        }
        return [self._event("cluster_test_done", "cluster", str(run["cluster"]), key, now, summary)]

    def due(self, now: float) -> list[Event]:
        """Return the events of agents that are down, and of partitions that are not ACTIVE, for their limits.

        An agent is reported once, a partition twice: after the first and after the second time span.
        """
        found: list[Event] = []
        for type, kind, id, condition, at in self._limits():
            if at <= now:
                condition.reports += 1
                detail = {
                    "id": id,
                    "state": condition.state,
                    "since": condition.since,
                    "seconds": round(now - condition.since),
                    "attempt": condition.reports,
                }
                key = "%d/%d" % (condition.since * 1000, condition.reports)
                found.append(self._event(type, kind, id, key, now, detail))
        return found

    def next_due(self) -> float | None:
        """Return the time of the next event of ``due``, None without one."""
        return min((at for *_object, at in self._limits()), default=None)

    def _limits(self) -> list[tuple[str, str, str, Condition, float]]:
        """Return type of event, kind, id, condition and time of each object that is not usable."""
        found = [
            ("agent_lost", "agent", id, each, each.since + self._lost_seconds)
            for id, each in sorted(self._agents.items())
            if each.state == DOWN and not each.reports
        ]
        found += [
            ("partition_stuck", "partition", id, each, each.since + (each.reports + 1) * self._stuck_seconds)
            for id, each in sorted(self._partitions.items())
            if each.state != ACTIVE and each.reports < 2
        ]
        return found

    def _event(self, type: str, kind: str, id: str, version: object, now: float, detail: Object) -> Event:
        """Return an event. ``key`` identifies it, even when it is delivered again after a crash.

        Its texts can come from agents and end up in playbooks, so they contain no templates.
        """
        event: Event = {
            "type": type,
            "kind": kind,
            "id": id,
            "key": "%s/%s/%s" % (type, id, version),
            "time": now,
            "controller": self.controller,
            "object": detail,
        }
        return t.cast("Event", untemplated(event))
