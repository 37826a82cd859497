# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check of new and larger shares against the quotas of Manila, before the first write."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ...reconcile import Action, Object, Step, UserError
from ..common.client import Cloud, CloudError
from ..common.steps import list_objects
from .families import FILE_SHARE, SERVICE

_UNLIMITED = -1


class _Quota(t.NamedTuple):
    """Name of one quota in Manila, and the demand of a step."""

    name: str
    unit: str
    units: str
    flag: str  # of the command openstack share quota set
    demand: t.Callable[[Step], int]


def _size(step: Step) -> int:
    before, desired = (step.before or {}).get("size", 0), (step.desired or {}).get("size")
    return 0 if desired is None else max(0, desired - before)


_QUOTAS = (
    _Quota("shares", "more share", "more shares", "--shares", lambda step: int(step.action is Action.CREATE)),
    _Quota("gigabytes", "GB more", "GB more", "--gigabytes", _size),
)
_LARGEST = "per_share_gigabytes"


def check_share_quotas(steps: t.Iterable[Step], cloud: Cloud, project: str, name: str) -> None:
    """Raise UserError when new or larger shares exceed a quota of the project with this id and name.

    A project has quotas for all of its shares, for one share, and for the shares of one type. A recreated share is
    removed first, and needs no additional quota unless it is larger or gets another type.
    """
    found = [step for step in steps if step.family is FILE_SHARE and step.action not in (Action.NONE, Action.DELETE)]
    demanding = _demanding(found)
    if demanding:
        limits = _limits(cloud, project)
        _check_total(demanding, limits, "the project", name)
        _check_largest(demanding, limits, name)
    for kind in sorted({_type(step) for step in found} - {""}):
        of_type = _demanding([_of_type(step) for step in found if _type(step) == kind])
        if of_type:
            limits = _limits(cloud, project, params={"share_type": kind})
            _check_total(of_type, limits, "the project for share type '%s'" % kind, "%s --share-type %s" % (name, kind))


def _demanding(steps: list[Step]) -> list[Step]:
    return [step for step in steps if any(quota.demand(step) for quota in _QUOTAS)]


def _type(step: Step) -> str:
    """Return the type of a share; empty for a new share of the default type."""
    return str((step.desired or {}).get("type") or (step.before or {}).get("type") or "")


def _of_type(step: Step) -> Step:
    """Return the step as the quotas of its type count it: a share of another type before is a new one."""
    before = step.before or {}
    if step.action is not Action.RECREATE or before.get("type") == _type(step):
        return step
    return replace(step, action=Action.CREATE, before=None, desired={**before, **(step.desired or {})})


def _check_total(steps: list[Step], limits: dict[str, Object], owner: str, target: str) -> None:
    """Compare the sum of the shares with the limits. ``target``: arguments that select them in the command."""
    for quota in _QUOTAS:
        demands = {step.key: quota.demand(step) for step in steps if quota.demand(step)}
        more, limit = sum(demands.values()), limits.get(quota.name)
        if not more or not limit or limit["limit"] == _UNLIMITED:
            continue
        used = limit["in_use"] + limit.get("reserved", 0)
        if used + more > limit["limit"]:
            raise UserError(
                "Cannot provide %s: %s %d %s; the quota of %s is %d, and %d are used. Raise it to at least %d "
                "(openstack share quota set %s %s %d)."
                % (
                    list_objects("share", list(demands)),
                    "they need" if len(demands) > 1 else "it needs",
                    more,
                    quota.unit if more == 1 else quota.units,
                    owner,
                    limit["limit"],
                    used,
                    used + more,
                    target,
                    quota.flag,
                    used + more,
                )
            )


def _check_largest(steps: list[Step], limits: dict[str, Object], target: str) -> None:
    limit = limits.get(_LARGEST, {}).get("limit", _UNLIMITED)
    for step in steps:
        size = (step.desired or {}).get("size", 0)
        if limit != _UNLIMITED and size > limit:
            raise UserError(
                "Cannot provide share '%s': it needs %d GB; the quota of the project for one share is %d. Raise it to "
                "at least %d (openstack share quota set %s --per-share-gigabytes %d)."
                % (step.key, size, limit, size, target, size)
            )


def _limits(cloud: Cloud, project: str, **options: t.Any) -> dict[str, Object]:
    """Read limit and use by quota; empty when Manila does not report them for these credentials, or no such type."""
    try:
        found = cloud.request(SERVICE, "GET", "/quota-sets/%s/detail" % project, **options)
    except CloudError as error:
        if error.status in (403, 404):
            return {}
        raise
    return t.cast("dict[str, Object]", found["quota_set"])
