# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One view of the objects of several controllers. No I/O."""

from __future__ import annotations

import typing as t

_LISTS = ("agents", "clusters", "allocations", "partitions", "users")
_BY_POD = {"versions": "version", "ipu_attributes": "ipu_attributes", "fits": "fits"}
_NO_REASON = "Cannot read the controller. See its log."


def merge(results: t.Mapping[str, t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """Return the objects of all PODs from the results of vipu_info by POD, each object with its ``pod``.

    Failed results are in ``failures``, as messages by POD. The time is linear in the number of objects. Raises
    ValueError with a clause for values that are not results of vipu_info.
    """
    merged: dict[str, t.Any] = {name: [] for name in _LISTS}
    merged.update({name: {} for name in (*_BY_POD, "failures")})
    for pod, result in results.items():
        if not isinstance(result, t.Mapping):
            raise ValueError("the result of POD '%s' is not a mapping" % pod)  # noqa: TRY004 - user input
        if result.get("failed") or result.get("unreachable"):
            merged["failures"][pod] = result.get("msg") or _NO_REASON
            continue
        if not result.keys() & {*_LISTS, *_BY_POD.values()}:
            raise ValueError("the result of POD '%s' has no values of vipu_info" % pod)
        for name in _LISTS:
            merged[name] += [{**item, "pod": pod} for item in result.get(name) or ()]
        for name, source in _BY_POD.items():
            if source in result:
                merged[name][pod] = result[source]
    return merged
