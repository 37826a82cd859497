# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check of new and larger shares against the quotas of Manila, before the first write."""

from __future__ import annotations

import typing as t

from ...reconcile import Action, Object, Step, UserError
from ..common.client import Cloud, CloudError
from .families import FILE_SHARE, SERVICE

_UNLIMITED = -1


class _Quota(t.NamedTuple):
    """Name of one quota in Manila, and the demand of a step."""

    name: str
    unit: str
    flag: str  # of the command openstack share quota set
    demand: t.Callable[[Step], int]


def _size(step: Step) -> int:
    before, desired = (step.before or {}).get("size", 0), (step.desired or {}).get("size")
    return 0 if desired is None else max(0, desired - before)


_QUOTAS = (
    _Quota("shares", "more", "--shares", lambda step: int(step.action is Action.CREATE)),
    _Quota("gigabytes", "GB more", "--gigabytes", _size),
)


def check_share_quotas(steps: t.Iterable[Step], cloud: Cloud, project: str, name: str) -> None:
    """Raise UserError when new or larger shares exceed a quota of the project with this id and name.

    A recreated share is removed first, and needs no additional quota unless it is larger.
    """
    found = [step for step in steps if step.family is FILE_SHARE and step.action not in (Action.NONE, Action.DELETE)]
    demanding = [step for step in found if any(quota.demand(step) for quota in _QUOTAS)]
    limits = _limits(cloud, project) if demanding else {}
    for quota in _QUOTAS:
        more = sum(quota.demand(step) for step in demanding)
        limit = limits.get(quota.name)
        if not limit or limit["limit"] == _UNLIMITED or not more:
            continue
        used = limit["in_use"] + limit.get("reserved", 0)
        if used + more > limit["limit"]:
            raise UserError(
                "Cannot provide share%s %s: %d %s needed, the quota of the project is %d, and %d are used. Raise it to "
                "at least %d (openstack share quota set %s %s %d)."
                % (
                    "s" if len(demanding) > 1 else "",
                    " and ".join("'%s'" % step.key for step in demanding),
                    more,
                    quota.unit,
                    limit["limit"],
                    used,
                    used + more,
                    name,
                    quota.flag,
                    used + more,
                )
            )


def _limits(cloud: Cloud, project: str) -> dict[str, Object]:
    """Read limit and use by quota; empty when Manila does not report them for these credentials."""
    try:
        found = cloud.request(SERVICE, "GET", "/quota-sets/%s/detail" % project)
    except CloudError as error:
        if error.status in (403, 404):
            return {}
        raise
    return t.cast("dict[str, Object]", found["quota_set"])
