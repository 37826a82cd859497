# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check of new servers against the quotas of Nova, before the first write."""

from __future__ import annotations

import typing as t

from ...reconcile import Action, Object, Step, UserError
from ..common.client import Cloud, CloudError
from ..common.steps import list_objects
from .families import SERVER

_UNLIMITED = -1


class _Quota(t.NamedTuple):
    """Names of one quota, and the demand of a server with a flavor."""

    limit: str  # in the limits of a project
    used: str
    unit: str
    units: str
    flag: str  # of the command openstack quota set
    demand: t.Callable[[Object], int]


_QUOTAS = (
    _Quota("maxTotalInstances", "totalInstancesUsed", "server", "servers", "--instances", lambda flavor: 1),
    _Quota("maxTotalCores", "totalCoresUsed", "vCPU", "vCPUs", "--cores", lambda flavor: int(flavor.get("vcpus", 0))),
    _Quota(
        "maxTotalRAMSize",
        "totalRAMUsed",
        "MB of memory",
        "MB of memory",
        "--ram",
        lambda flavor: int(flavor.get("ram", 0)),
    ),
)


def check_server_quotas(
    steps: t.Iterable[Step], cloud: Cloud, flavor: t.Callable[[str], Object | None], project: str, name: str
) -> None:
    """Raise UserError when new servers exceed a quota of the project with this id and name.

    ``flavor`` returns a flavor by its name. In check mode, it may not exist yet. A server that is recreated is removed
    first, so only its flavor may need more; Nova checks that itself.
    """
    new = [step.desired or {} for step in steps if step.family is SERVER and step.action is Action.CREATE]
    flavors = [flavor(item.get("flavor", "")) or {} for item in new]
    limits = _limits(cloud, project) if flavors else {}
    for quota in _QUOTAS:
        limit, used = limits.get(quota.limit, _UNLIMITED), limits.get(quota.used, 0)
        more = sum(quota.demand(each) for each in flavors)
        if more and limit != _UNLIMITED and used + more > limit:
            raise UserError(
                "Cannot start %s: %s, and %d %s used. Raise it to at least %d (openstack quota set %s %d %s)."
                % (
                    list_objects("server", [item["name"] for item in new]),
                    _compare(quota, limit, more, len(new)),
                    used,
                    "is" if used == 1 else "are",
                    used + more,
                    quota.flag,
                    used + more,
                    name,
                )
            )


def _compare(quota: _Quota, limit: int, more: int, count: int) -> str:
    """Return the demand of new servers, and the quota. The message names the servers, so it states no number."""
    if quota.flag == "--instances":
        return "the quota of the project is %d %s" % (limit, quota.unit if limit == 1 else quota.units)
    pronoun = "it needs" if count == 1 else "they need"
    return "%s %d %s, the quota of the project is %d" % (pronoun, more, quota.unit if more == 1 else quota.units, limit)


def _limits(cloud: Cloud, project: str) -> Object:
    """Read the limits of a project; empty when Nova does not report them for these credentials."""
    other_project = {} if project == cloud.authorize() else {"tenant_id": project}
    try:
        found = cloud.request("compute", "GET", "/limits", params=other_project)
    except CloudError as error:
        if error.status in (403, 404):
            return {}
        raise
    return t.cast("Object", found["limits"]["absolute"])
