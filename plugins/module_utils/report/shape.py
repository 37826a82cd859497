# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What values from elsewhere have to be, so that whatever works with them need not ask again. Pure."""

from __future__ import annotations

import typing as t

from ..pod import topology

Object = dict[str, t.Any]
Check = t.Callable[[t.Any], bool]
Spec = t.Mapping[str, tuple[Check, t.Any]]  # what every value of a mapping has to be, and what it is when it is missing

REQUIRED = object()  # of a value that must not be missing
_LAST_TIME = 253402300799  # the end of the year 9999, in seconds since 1970: no calendar goes further
_MOST = 2**63  # of anything that is counted


def text(value: t.Any) -> bool:
    """Any text."""
    return isinstance(value, str)


def flag(value: t.Any) -> bool:
    """True or false, and no number in its place."""
    return isinstance(value, bool)


def count(value: t.Any) -> bool:
    """How many of something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def time(value: t.Any) -> bool:
    """Seconds since 1970 that a calendar has a date for."""
    return count(value) and value <= _LAST_TIME


def seconds(value: t.Any) -> bool:
    """A duration."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST


def scalar(value: t.Any) -> bool:
    """Whatever can be written in one cell of a table."""
    return value is None or isinstance(value, str | float) or flag(value) or count(value)


def anything(value: t.Any) -> bool:
    """What is looked at later."""
    return True


def one_of(*values: str) -> Check:
    """One of these texts."""
    return lambda value: isinstance(value, str) and value in values


def or_none(check: Check) -> Check:
    """That, or null."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    """Any number of these."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def mapping_of(check: Check) -> Check:
    """Any number of these, each with a name."""
    return lambda value: isinstance(value, dict) and all(map(text, value)) and all(map(check, value.values()))


def filled(value: t.Any, spec: Spec, where: str) -> Object:
    """A mapping with everything that is missing. Raises ValueError with a clause that names the place."""
    if not isinstance(value, dict):
        raise ValueError("%s is no mapping" % where)  # noqa: TRY004 - all of it is text from somewhere
    found: Object = dict(value)
    for name, (check, default) in spec.items():
        if name not in value and default is REQUIRED:
            raise ValueError("%s has no '%s'" % (where, name))
        if name in value and not check(value[name]):
            raise ValueError("'%s' of %s makes no sense" % (name, where))
        found.setdefault(name, default)
    return found


CLUSTER: Spec = {
    "agents": (or_none(list_of(text)), None),
    "num_ilds": (or_none(count), None),
    "topology": (or_none(one_of(topology.MESH, topology.TORUS)), None),
}


def cluster(value: t.Any, spec: Spec, where: str) -> Object:
    """A mapping that tells of a cluster besides. Raises ValueError likewise, also for one that cannot be."""
    found = filled(value, {**CLUSTER, **spec}, where)
    agents, ilds = found["agents"] or (), found["num_ilds"] or 1
    if len(set(agents)) < len(agents):
        raise ValueError("'agents' of %s has one of them twice" % where)
    if len(agents) % ilds:
        raise ValueError("%d agents of %s are not %d equal domains" % (len(agents), where, ilds))
    return found
