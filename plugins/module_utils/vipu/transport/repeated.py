# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that ended without a response, and are made again at the next controller.

Only for changes with the same effect when they are made twice. ``replan`` compares the objects of all others.
"""

from __future__ import annotations

import typing as t

from ...reconcile import Object
from ..client import Client, VipuError
from ..failover import may_be_made

_MOST_ATTEMPTS = 3

_T = t.TypeVar("_T")


def is_unknown(client: Client, error: VipuError) -> bool:
    """Return whether a change may have been made, and another controller can report that."""
    several = len(client.connection.addresses) > 1
    return several and may_be_made(error.code, error.details, error.error_code)


def repeat(
    client: Client, change: t.Callable[[], _T], read: t.Callable[[], _T | None] = lambda: None
) -> tuple[_T, bool]:
    """Make a change, again if its result is unknown. Return its result, and whether it is that of a later attempt.

    ``read`` returns the result of an earlier attempt at the next controller, None if that was not made. Raises
    VipuError. When a later attempt is rejected, the error has the code of the first one, because that may be made.
    """
    first: VipuError | None = None
    for attempt in range(_MOST_ATTEMPTS):
        try:
            if first and (found := read()) is not None:
                return found, True
            return change(), first is not None
        except VipuError as error:
            if is_unknown(client, error) and attempt + 1 < _MOST_ATTEMPTS:
                first = first or error
            elif first:
                message = "%s An earlier attempt had no response, so the change may have been made." % error.message
                raise VipuError(message, first.code, error.details, error.error_code) from None
            else:
                raise
    raise AssertionError


def with_moved(planned: Object, drained: Object, read: t.Callable[[], t.Iterable[Object]]) -> Object:
    """Return the result of a drain whose first attempt may have moved partitions before its response was lost.

    ``planned``: what the drain would do, read before it. ``drained``: result of the last attempt. ``read`` returns the
    partitions that exist now. When it fails, the drain is done, and the result has only what the last attempt moved.
    """
    listed = {item["id"] for item in drained["partitions"]}
    try:
        lost = {item["id"] for item in read()} - listed
    except VipuError:
        lost = set()
    moved = [item for item in planned["partitions"] if item["moves"] and item["id"] in lost]
    return {
        "changed": planned["changed"] or drained["changed"],
        "partitions": sorted([*drained["partitions"], *moved], key=lambda item: str(item["id"])),
    }
