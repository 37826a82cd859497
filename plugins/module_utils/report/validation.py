# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of external values with defaults, so that other modules need no checks. No I/O."""

from __future__ import annotations

import typing as t

from ..pod import topology

Object = dict[str, t.Any]
Check = t.Callable[[t.Any], bool]
Spec = t.Mapping[str, tuple[Check, t.Any]]  # check and default of every value of a mapping

REQUIRED = object()  # default of a required value
_LAST_TIME = 253402300799  # seconds since 1970 at the end of the year 9999, the limit of datetime
_LIMIT = 2**63  # upper limit of numbers


def text(value: t.Any) -> bool:
    """Return whether the value is text."""
    return isinstance(value, str)


def flag(value: t.Any) -> bool:
    """Return whether the value is a boolean."""
    return isinstance(value, bool)


def count(value: t.Any) -> bool:
    """Return whether the value is a number of objects."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LIMIT


def time(value: t.Any) -> bool:
    """Return whether the value is a valid time in seconds since 1970."""
    return count(value) and value <= _LAST_TIME


def quantity(value: t.Any) -> bool:
    """Return whether the value is a duration in seconds or another quantity, at least 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LIMIT


def scalar(value: t.Any) -> bool:
    """Return whether the value fits in a table cell: text, number, boolean or None."""
    return value is None or isinstance(value, str | float) or flag(value) or count(value)


def any_value(value: t.Any) -> bool:
    """Accept all values; they are checked later."""
    return True


def one_of(*values: str) -> Check:
    """Return a check for one of these texts."""
    return lambda value: isinstance(value, str) and value in values


def or_none(check: Check) -> Check:
    """Return a check that also accepts None."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    """Return a check for lists of such values."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def mapping_of(check: Check) -> Check:
    """Return a check for mappings from text to such values."""
    return lambda value: isinstance(value, dict) and all(map(text, value)) and all(map(check, value.values()))


def filled(value: t.Any, spec: Spec, where: str) -> Object:
    """Return a checked mapping with defaults. Raises ValueError with a clause that names the place."""
    if not isinstance(value, dict):
        raise ValueError("%s is not a mapping" % where)  # noqa: TRY004 - user input, not a programming error
    found: Object = dict(value)
    for name, (check, default) in spec.items():
        if name not in value and default is REQUIRED:
            raise ValueError("%s has no '%s'" % (where, name))
        if name in value and not check(value[name]):
            raise ValueError("'%s' of %s is invalid" % (name, where))
        found.setdefault(name, default)
    return found


CLUSTER: Spec = {
    "agents": (or_none(list_of(text)), None),
    "num_ilds": (or_none(count), None),
    "topology": (or_none(one_of(topology.MESH, topology.TORUS)), None),
}


def cluster(value: t.Any, spec: Spec, where: str) -> Object:
    """Return a checked mapping that also describes a cluster. Raises ValueError, also for an impossible cluster."""
    found = filled(value, {**CLUSTER, **spec}, where)
    agents, ilds = found["agents"] or (), found["num_ilds"] or 1
    if len(set(agents)) < len(agents):
        raise ValueError("'agents' of %s has duplicates" % where)
    if len(agents) % ilds:
        raise ValueError("%d agents of %s cannot be divided into %d equal domains" % (len(agents), where, ilds))
    return found
