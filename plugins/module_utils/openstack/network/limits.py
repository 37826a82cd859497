# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of a plan against quotas and extensions of the cloud. Pure; ``Limits`` reads them."""

from __future__ import annotations

import typing as t

from ...reconcile import Action, Family, Object, Step, UserError
from ..common.steps import CREATIONS
from .deletion import is_removed_first
from .families import INTERFACE, NETWORK, NONE, PORT, ROUTER, SECURITY_GROUP, SHARE, SUBNET, SUBNET_POOL
from .offload import EXTENSION as OFFLOAD_EXTENSION

_OFFLOAD_DRIVER = (
    "Enable the ML2 extension driver port_hardware_offload_type, upgrade Nova to 2024.1 or later, or omit "
    "hardware_offload."
)
_DNS_DRIVER = (
    "Enable an ML2 extension driver for DNS, such as subnet_dns_publish_fixed_ip, or omit it (dns_domain in pod.yml)."
)
_PORT_SECURITY_DRIVER = "Enable the ML2 extension driver port_security, or omit it."
# Options that need an extension of the API: family, field, alias of the extension, remedy.
_EXTENSIONS: tuple[tuple[Family, str, str, str], ...] = (
    (PORT, "hardware_offload", OFFLOAD_EXTENSION, _OFFLOAD_DRIVER),
    (PORT, "dns_name", "dns-integration", _DNS_DRIVER),
    (PORT, "port_security", "port-security", _PORT_SECURITY_DRIVER),
    (NETWORK, "dns_domain", "dns-integration", _DNS_DRIVER),
    (NETWORK, "port_security", "port-security", _PORT_SECURITY_DRIVER),
    (ROUTER, "external_network", "router", "Enable the service plugin router, or omit external_network in pod.yml."),
    (SHARE, "project", "rbac-policies", "Omit the shares."),
)
_QUOTAS = {  # name in Neutron -> kind
    "network": NETWORK.kind,
    "subnet": SUBNET.kind,
    "security_group": SECURITY_GROUP.kind,
    "router": ROUTER.kind,
    "rbac_policy": SHARE.kind,
    "subnetpool": SUBNET_POOL.kind,
}
_DEFAULT_RULES = 2  # Neutron adds them to a new security group
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


class Limits(t.Protocol):
    """Quotas and extensions of a cloud, each read at its call."""

    def quotas(self) -> t.Mapping[str, Object]:
        """Return limit, usage and reservation by name of the quota; empty when the cloud does not report them."""

    def has_extension(self, alias: str) -> bool:
        """Return whether Neutron has an API extension."""


def check_limits(steps: t.Sequence[Step], limits: Limits, project: str) -> None:
    """Raise UserError when the cloud does not support an option, or a quota of the project is too small."""
    for family, name, alias, remedy in _EXTENSIONS:
        step = next((step for step in steps if step.family is family and _writes(step, name)), None)
        if step and not limits.has_extension(alias):
            raise UserError(
                "Cannot set %s of %s '%s': this Neutron has no API extension '%s'. %s"
                % (name, family.title, step.key, alias, remedy)
            )
    if any(step.action is Action.CREATE for step in steps):
        check_quotas(steps, limits.quotas(), project)


def _writes(step: Step, name: str) -> bool:
    """Return whether a step writes a field. False and empty values of new objects need no extension."""
    if step.action in CREATIONS:
        return (step.desired or {}).get(name) not in (None, "", False, NONE)
    return step.action is Action.CHANGE and name in [f.name for f in step.changed_fields]


def quota_demand(steps: t.Iterable[Step]) -> dict[str, int]:
    """Return the largest number of additional objects during the run, by name of the quota."""
    count = dict.fromkeys([*_QUOTAS, "port", "security_group_rule"], 0)
    kinds = {kind: name for name, kind in _QUOTAS.items()}
    steps = list(steps)
    for step in steps:
        change = {Action.CREATE: 1, Action.DELETE: -1}.get(step.action, 0)
        if change < 0 and not is_removed_first(step, steps):
            continue  # it still counts while others are created
        if step.family.kind in kinds:
            count[kinds[step.family.kind]] += change
        if step.family in (PORT, INTERFACE):
            count["port"] += change
        if step.family is ROUTER and change == 1 and (step.desired or {}).get("external_network", "none") != "none":
            count["port"] += 1
        if step.family is SECURITY_GROUP and step.desired is not None and step.desired.get("rules") is not None:
            before = len((step.before or {}).get("rules", ())) if step.before else 0
            count["security_group_rule"] += max(0, len(step.desired["rules"]) - before)
            count["security_group_rule"] += _DEFAULT_RULES * (step.action is Action.CREATE)
    return count


def check_quotas(steps: t.Iterable[Step], quotas: t.Mapping[str, Object], project: str) -> None:
    """Raise UserError when the steps exceed a quota of the project."""
    for name, more in quota_demand(steps).items():
        quota = quotas.get(name)
        if not quota or quota["limit"] < 0 or more <= 0:
            continue
        used = quota["used"] + quota.get("reserved", 0)
        if used + more > quota["limit"]:
            raise UserError(
                "Cannot create %d more %s: the quota of the project is %d, and %d are used. Raise it to at least %d "
                "(openstack quota set %s %d %s)."
                % (
                    more,
                    _PLURALS.get(name, name.replace("_", " ") + ("" if more == 1 else "s")),
                    quota["limit"],
                    used,
                    used + more,
                    _FLAGS[name],
                    used + more,
                    project,
                )
            )
