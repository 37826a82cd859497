# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of runs of cluster tests from files, with defaults for missing values. No I/O."""

from __future__ import annotations

import typing as t

from ..pod.topology import CableKind
from . import validation
from .validation import REQUIRED, Object, Spec, count, flag, list_of, mapping_of, one_of, or_none, text

# The format of vipu/objects.test_run.
_RUN: Spec = {
    "results": (list_of(validation.any_value), REQUIRED),
    "ok": (flag, REQUIRED),
    "state": (text, "finished"),
    "cluster": (or_none(text), None),
    "error": (or_none(text), None),
    "ended": (or_none(validation.time), None),
}
_RESULT: Spec = {
    "test": (text, REQUIRED),
    "ok": (flag, REQUIRED),
    "duration": (validation.quantity, 0.0),
    "passed": (count, 0),
    "total": (count, 0),
    "summary": (list_of(text), ()),
    "skipped": (flag, False),
    "skipped_because": (or_none(text), None),
    "disturbs": (list_of(text), ()),
    "failures": (list_of(validation.any_value), ()),
    "versions": (mapping_of(mapping_of(text)), {}),
}
_FAILURE: Spec = {
    "kind": (or_none(text), None),
    "reason": (text, ""),
    "empty": (flag, False),
    "empty_b": (flag, False),
    "agent": (or_none(text), None),
    "link": (or_none(text), None),
    "corrected_errors": (or_none(count), None),
    "component": (or_none(text), None),
    "versions": (mapping_of(text), {}),
}
_PORT: Spec = {"agent": (text, REQUIRED), "kind": (one_of(*CableKind), REQUIRED), "port": (count, REQUIRED)}
_PORTS = ("a", "b", "found", "found_b")


def checked(value: t.Any) -> Object:
    """Return the checked run with defaults. Raises ValueError with a clause that names the place."""
    run = validation.cluster(value, _RUN, "the run")
    run["results"] = [_result(result, number) for number, result in enumerate(run["results"], 1)]
    return run


def _result(value: t.Any, number: int) -> Object:
    where = "result %d" % number
    result = validation.filled(value, _RESULT, where)
    result["failures"] = [
        _failure(failure, "failure %d of %s" % (number, where)) for number, failure in enumerate(result["failures"], 1)
    ]
    return result


def _failure(value: t.Any, where: str) -> Object:
    failure = validation.filled(value, _FAILURE, where)
    for name in _PORTS:
        port = failure.get(name)
        failure[name] = None if port is None else validation.filled(port, _PORT, "'%s' of %s" % (name, where))
    if bool(failure["a"]) != bool(failure["b"]):
        raise ValueError("%s has only one end" % where)
    return failure
