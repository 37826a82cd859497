# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a project may have as much as a plan takes. Pure; the first mistake is raised as a SentenceError."""

from __future__ import annotations

import typing as t

from ..reconcile import Action, Object, SentenceError, Step
from .leaving import goes_first
from .resources import INTERFACE, NETWORK, PORT, ROUTER, SECURITY_GROUP, SHARE, SUBNET, SUBNET_POOL

_QUOTAS = {  # what Neutron counts, and how a step counts
    "network": NETWORK.kind,
    "subnet": SUBNET.kind,
    "security_group": SECURITY_GROUP.kind,
    "router": ROUTER.kind,
    "rbac_policy": SHARE.kind,
    "subnetpool": SUBNET_POOL.kind,
}
_DEFAULT_RULES = 2  # of a new security group, until they are removed


def needed(steps: t.Iterable[Step]) -> dict[str, int]:
    """How many more of what Neutron counts there will be, at the most at a time."""
    count = dict.fromkeys([*_QUOTAS, "port", "security_group_rule"], 0)
    kinds = {kind: name for name, kind in _QUOTAS.items()}
    steps = list(steps)
    for step in steps:
        change = {Action.CREATE: 1, Action.DELETE: -1}.get(step.action, 0)
        if change < 0 and not goes_first(step, steps):
            continue  # it is still there when the others come
        if step.family.kind in kinds:
            count[kinds[step.family.kind]] += change
        if step.family in (PORT, INTERFACE):
            count["port"] += change
        if step.family is ROUTER and change == 1 and (step.wanted or {}).get("external_network", "none") != "none":
            count["port"] += 1
        if step.family is SECURITY_GROUP and step.wanted is not None and step.wanted.get("rules") is not None:
            before = len((step.before or {}).get("rules", ())) if step.before else 0
            count["security_group_rule"] += max(0, len(step.wanted["rules"]) - before)
            count["security_group_rule"] += _DEFAULT_RULES * (step.action is Action.CREATE)
    return count


def check_quotas(steps: t.Iterable[Step], quotas: t.Mapping[str, Object], project: str) -> None:
    """Refuse what is more than the project may have."""
    for name, more in needed(steps).items():
        quota = quotas.get(name)
        if not quota or quota["limit"] < 0 or more <= 0:
            continue
        used = quota["used"] + quota.get("reserved", 0)
        if used + more > quota["limit"]:
            raise SentenceError(
                "This takes %d more %s, and the project may have %d and has %d: raise its quota to %d at least "
                "(openstack quota set %s %d %s)."
                % (
                    more,
                    _PLURALS.get(name, name.replace("_", " ") + "s"),
                    quota["limit"],
                    used,
                    used + more,
                    _FLAGS[name],
                    used + more,
                    project,
                )
            )


_PLURALS = {"rbac_policy": "shares (RBAC policies)", "subnetpool": "subnet pools"}
_FLAGS = {
    "network": "--networks",
    "subnet": "--subnets",
    "port": "--ports",
    "router": "--routers",
    "security_group": "--secgroups",
    "security_group_rule": "--secgroup-rules",
    "rbac_policy": "--rbac-policies",
    "subnetpool": "--subnetpools",
}
