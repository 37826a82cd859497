# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of cluster tests as files give them: what is not told is filled in, and nonsense refused. Pure."""

from __future__ import annotations

import typing as t

from ..pod import topology

Object = dict[str, t.Any]
Check = t.Callable[[t.Any], bool]

_REQUIRED = object()
_LAST_TIME = 253402300799  # the end of the year 9999, in seconds since 1970: no calendar goes further
_MOST = 2**63  # of anything that is counted


def _text(value: t.Any) -> bool:
    return isinstance(value, str)


def _flag(value: t.Any) -> bool:
    return isinstance(value, bool)


def _count(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _time(value: t.Any) -> bool:
    return _count(value) and value <= _LAST_TIME


def _seconds(value: t.Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST


def _list(value: t.Any) -> bool:
    return isinstance(value, list)


def _texts(value: t.Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _versions(value: t.Any) -> bool:
    return isinstance(value, dict) and all(_text(agent) and _text(version) for agent, version in value.items())


def _components(value: t.Any) -> bool:
    return isinstance(value, dict) and all(_text(name) and _versions(versions) for name, versions in value.items())


def _one_of(*values: t.Any) -> Check:
    return lambda value: isinstance(value, str) and value in values


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


# As vipu/objects.test_run makes them: what every value has to be, and what it is when it is not there.
_RUN: dict[str, tuple[Check, t.Any]] = {
    "results": (_list, _REQUIRED),
    "ok": (_flag, _REQUIRED),
    "state": (_text, "finished"),
    "cluster": (_or_none(_text), None),
    "agents": (_or_none(_texts), None),
    "num_ilds": (_or_none(_count), None),
    "topology": (_or_none(_one_of(topology.MESH, topology.TORUS)), None),
    "error": (_or_none(_text), None),
    "ended": (_or_none(_time), None),
}
_RESULT: dict[str, tuple[Check, t.Any]] = {
    "test": (_text, _REQUIRED),
    "ok": (_flag, _REQUIRED),
    "duration": (_seconds, 0.0),
    "passed": (_count, 0),
    "total": (_count, 0),
    "summary": (_texts, ()),
    "skipped": (_flag, False),
    "skipped_because": (_or_none(_text), None),
    "disturbs": (_texts, ()),
    "failures": (_list, ()),
    "versions": (_components, {}),
}
_FAILURE: dict[str, tuple[Check, t.Any]] = {
    "kind": (_or_none(_text), None),
    "reason": (_text, ""),
    "empty": (_flag, False),
    "empty_b": (_flag, False),
    "agent": (_or_none(_text), None),
    "link": (_or_none(_text), None),
    "corrected_errors": (_or_none(_count), None),
    "component": (_or_none(_text), None),
    "versions": (_versions, {}),
}
_PORT: dict[str, tuple[Check, t.Any]] = {
    "agent": (_text, _REQUIRED),
    "kind": (_one_of(*topology.CableKind), _REQUIRED),
    "port": (_count, _REQUIRED),
}
_PORTS = ("a", "b", "found", "found_b")


def checked(given: t.Any) -> Object:
    """The run, with everything that a report needs. Raises ValueError with a clause that names the place."""
    run = _filled(given, _RUN, "the run")
    agents, ilds = run["agents"] or (), run["num_ilds"] or 1
    if len(set(agents)) < len(agents):
        raise ValueError("'agents' of the run has one of them twice")
    if len(agents) % ilds:
        raise ValueError("%d agents of the run are not %d equal domains" % (len(agents), ilds))
    run["results"] = [_result(result, number) for number, result in enumerate(run["results"], 1)]
    return run


def _result(given: t.Any, number: int) -> Object:
    where = "result %d" % number
    result = _filled(given, _RESULT, where)
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


def _filled(value: t.Any, spec: t.Mapping[str, tuple[Check, t.Any]], where: str) -> Object:
    if not isinstance(value, dict):
        raise ValueError("%s is no mapping" % where)  # noqa: TRY004 - all of it is text from somewhere
    found: Object = dict(value)
    for name, (check, default) in spec.items():
        if name not in value and default is _REQUIRED:
            raise ValueError("%s has no '%s'" % (where, name))
        if name in value and not check(value[name]):
            raise ValueError("'%s' of %s makes no sense" % (name, where))
        found.setdefault(name, default)
    return found
