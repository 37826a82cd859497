# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validation of the result of vipu_info from playbooks, with defaults for missing values. No I/O."""

from __future__ import annotations

import typing as t

from . import validation
from .validation import REQUIRED, Object, Spec, count, list_of, mapping_of, or_none, text

_OBJECTS = or_none(list_of(validation.any_value))
# The format of vipu_info.
_INFO: Spec = {
    "agents": (_OBJECTS, None),
    "clusters": (_OBJECTS, None),
    "allocations": (_OBJECTS, None),
    "partitions": (_OBJECTS, None),
    "ipu_attributes": (or_none(mapping_of(mapping_of(mapping_of(validation.scalar)))), None),
}
_AGENT: Spec = {
    "id": (text, REQUIRED),
    "host": (or_none(text), None),
    "state": (or_none(text), None),
    "versions": (or_none(mapping_of(text)), None),
}
_CLUSTER: Spec = {"id": (text, REQUIRED)}
_ALLOCATION: Spec = {
    "id": (text, REQUIRED),
    "cluster": (or_none(text), None),
    "agents": (or_none(list_of(text)), None),
}
_PARTITION: Spec = {
    "id": (text, REQUIRED),
    "cluster": (or_none(text), None),
    "allocation": (or_none(text), None),
    "state": (or_none(text), None),
    "size": (or_none(count), None),
    "ipus": (or_none(list_of(validation.any_value)), None),
}
_IPU: Spec = {"ild": (count, REQUIRED), "topology_id": (count, REQUIRED)}


def checked(value: t.Any) -> Object:
    """Return the checked result with defaults. Raises ValueError with a clause that names the place."""
    info = validation.filled(value, _INFO, "it")
    _each(info, "agents", lambda item, where: validation.filled(item, _AGENT, where))
    _each(info, "clusters", lambda item, where: validation.cluster(item, _CLUSTER, where))
    _each(info, "allocations", lambda item, where: validation.filled(item, _ALLOCATION, where))
    _each(info, "partitions", lambda item, where: validation.filled(item, _PARTITION, where))
    for number, partition in enumerate(info["partitions"] or (), 1):
        for ipu in partition["ipus"] or ():
            validation.filled(ipu, _IPU, "an IPU of partitions %d" % number)
    return info


def _each(info: Object, name: str, check: t.Callable[[t.Any, str], Object]) -> None:
    if info[name] is not None:
        info[name] = [check(item, "%s %d" % (name, number)) for number, item in enumerate(info[name], 1)]
