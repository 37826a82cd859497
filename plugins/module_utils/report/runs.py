# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of cluster tests as files give them: what is not told is filled in, and nonsense refused. Pure."""

from __future__ import annotations

import typing as t

Object = dict[str, t.Any]

_TEXT = (str, type(None))
_COUNT = (int, type(None))
_NUMBER = (int, float)
# As vipu/objects.test_run makes them: the types of every value, and what it is when it is not there.
_RUN: dict[str, tuple[t.Any, t.Any]] = {
    "state": (str, "finished"),
    "cluster": (_TEXT, None),
    "agents": ((list, type(None)), None),
    "num_ilds": (_COUNT, None),
    "topology": (_TEXT, None),
    "ended": (_COUNT, None),
}
_RESULT: dict[str, tuple[t.Any, t.Any]] = {
    "duration": (_NUMBER, 0.0),
    "passed": (int, 0),
    "total": (int, 0),
    "summary": (list, []),
    "skipped": (bool, False),
    "skipped_because": (_TEXT, None),
    "disturbs": (list, []),
    "failures": (list, []),
}
_FAILURE: dict[str, tuple[t.Any, t.Any]] = {
    "kind": (_TEXT, None),
    "reason": (str, ""),
    "agent": (_TEXT, None),
    "link": (_TEXT, None),
    "corrected_errors": (_COUNT, None),
    "component": (_TEXT, None),
    "versions": (dict, {}),
}
_PORT: dict[str, tuple[t.Any, t.Any]] = {"agent": (str, ...), "kind": (str, ...), "port": (int, ...)}
_PORTS = ("a", "b", "found", "found_b")


def checked(given: t.Any) -> Object:
    """The run, with everything that a report needs. Raises ValueError with a clause that names the place."""
    run = _filled(given, {"results": (list, ...), "ok": (bool, ...), **_RUN}, "the run")
    if any(not isinstance(agent, str) for agent in run["agents"] or ()):
        raise ValueError("'agents' of the run are no names")
    ilds = run["num_ilds"] or 1
    if ilds < 1 or len(run["agents"] or ()) % ilds:
        raise ValueError("%d agents of the run are not %d equal domains" % (len(run["agents"] or ()), ilds))
    run["results"] = [_result(result, number) for number, result in enumerate(run["results"], 1)]
    return run


def _result(given: t.Any, number: int) -> Object:
    where = "result %d" % number
    result = _filled(given, {"test": (str, ...), "ok": (bool, ...), **_RESULT}, where)
    result["failures"] = [
        _failure(failure, "failure %d of %s" % (count, where)) for count, failure in enumerate(result["failures"], 1)
    ]
    return result


def _failure(given: t.Any, where: str) -> Object:
    failure = _filled(given, _FAILURE, where)
    for name in _PORTS:
        port = failure.get(name)
        failure[name] = None if port is None else _filled(port, _PORT, "'%s' of %s" % (name, where))
    if bool(failure["a"]) != bool(failure["b"]):
        raise ValueError("%s has one end only" % where)
    return failure


def _filled(value: t.Any, spec: t.Mapping[str, tuple[t.Any, t.Any]], where: str) -> Object:
    if not isinstance(value, dict):
        raise ValueError("%s is no mapping" % where)  # noqa: TRY004 - all of it is text from somewhere
    found: Object = dict(value)
    for name, (types, default) in spec.items():
        if name not in value and default is ...:
            raise ValueError("%s has no '%s'" % (where, name))
        given = found.setdefault(name, default)
        if not isinstance(given, types) or (isinstance(given, bool) and types is not bool):
            raise ValueError("'%s' of %s makes no sense" % (name, where))
    return found
