# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of removals, and what blocks them: ports, and an incomplete read. No I/O."""

from __future__ import annotations

import ipaddress
import typing as t

from ...reconcile import Action, Object, Step, UserError
from ..common.steps import REMOVALS, step_name
from .families import ALL_PROJECTS, INTERFACE, NETWORK, PORT, ROUTER, SHARE, SUBNET, overlap
from .parse import NetworkState
from .port_checks import GATEWAY, describe_port

_ALWAYS_FIRST = (SHARE, INTERFACE, ROUTER, PORT)
# Ports that Neutron creates and removes itself.
_INTERNAL_PORTS = (
    "network:dhcp",
    "network:distributed",
    "network:floatingip_agent_gateway",
    "network:router_centralized_snat",  # removed with its router interface
)


def is_removed_first(step: Step, steps: t.Iterable[Step]) -> bool:
    """Return whether an object is removed before others are created and changed.

    Changed objects may use a subnet or network until then, so these are removed last. The exception is a subnet with
    addresses that a new one needs. The new subnet may be on any network, since both may be from one pool.
    """
    if step.family is not SUBNET:
        return step.family in _ALWAYS_FIRST
    cidr = (step.before or {})["cidr"]
    created = [other.desired for other in steps if other.family is SUBNET and other.action is Action.CREATE]
    return any(overlap(item["cidr"], cidr) for item in created if item)


def check_complete(steps: list[Step], state: NetworkState) -> None:
    """Raise UserError when objects may be missing in the actual state, and the plan removes others."""
    removal = next((step for step in steps if step.action in REMOVALS), None)
    if removal and state.doubt:
        raise UserError(
            "Cannot remove %s: Neutron may have returned only some of the objects, since %s. Nothing was changed. Run "
            "the task again when Neutron returns all objects. If none is missing, set accept_incomplete_reads."
            % (step_name(removal), state.doubt)
        )


def check_remaining_ports(steps: list[Step], state: NetworkState) -> None:
    """Raise UserError when a port remains on a network, subnet or share to remove.

    Neutron would reject that too, but only after other objects were removed.
    """
    removals = [step for step in steps if step.action in REMOVALS and step.before]
    remaining = _RemainingPorts(steps, removals, state)
    for step in removals:
        before = step.before or {}
        if step.family is NETWORK:
            found = remaining.on_network(before["uuid"])
        elif step.family is SUBNET:
            found = remaining.on_subnet(step)
        elif step.family is SHARE and any(other.family is not SHARE for other in removals):
            found = remaining.dependent_on_share(before["uuid"])
        else:  # without other removals, Neutron rejects single shares and nothing else is lost
            continue
        if found:
            kind = step.family.kind
            raise UserError(
                "Cannot remove %s '%s': %s uses it. Remove that one first, or keep the %s."
                % (kind, step.key, describe_port(found[0], state.project_suffix(found[0])), kind)
            )


class _RemainingPorts:
    """Ports that exist after the plan, except those that Neutron removes itself."""

    def __init__(self, steps: list[Step], removals: list[Step], state: NetworkState) -> None:
        self._steps = steps
        self._state = state
        self._removed = {(step.before or {})["uuid"] for step in removals}
        changed = [step for step in steps if step.action is Action.CHANGE]
        routers = self._removed | {(step.before or {})["uuid"] for step in changed if step.family is ROUTER}
        self._ports = [
            raw
            for raw in state.raw.get(PORT.kind, ())
            if raw["id"] not in self._removed
            and raw["device_owner"] not in _INTERNAL_PORTS
            # Neutron removes the gateway of a router that is removed or gets another external network.
            and not (raw["device_owner"] == GATEWAY and raw["device_id"] in routers)
        ]
        self._addresses = {
            (step.before or {})["uuid"]: (step.desired or {})["addresses"]
            for step in changed
            if step.family is PORT and (step.desired or {}).get("addresses") is not None
        }

    def on_network(self, network: str) -> list[Object]:
        """Return the ports on a network."""
        return [raw for raw in self._ports if raw["network_id"] == network]

    def on_subnet(self, step: Step) -> list[Object]:
        """Return the ports with an address of a subnet at the time of its removal."""
        before = step.before or {}
        cidr = ipaddress.ip_network(before["cidr"])
        found = []
        for raw in self._ports:
            has = before["uuid"] in [fixed["subnet_id"] for fixed in raw["fixed_ips"]]
            if has and raw["id"] in self._addresses and not is_removed_first(step, self._steps):
                has = any(ipaddress.ip_address(address) in cidr for address in self._addresses[raw["id"]])
            if has:
                found.append(raw)
        return found

    def dependent_on_share(self, policy: str) -> list[Object]:
        """Return the ports of projects that may use a network because of this share only."""
        shares = {raw["id"]: raw for raw in self._state.raw[SHARE.kind]}
        network, target = shares[policy]["object_id"], _target(shares[policy])
        others = {_target(raw) for id, raw in shares.items() if raw["object_id"] == network and id not in self._removed}
        return [
            raw
            for raw in self.on_network(network)
            if raw["project_id"] not in (self._state.project, *others)
            and ALL_PROJECTS not in others
            and target in (ALL_PROJECTS, raw["project_id"])
        ]


def _target(policy: Object) -> str:
    return str(policy.get("target_project") or policy["target_tenant"])
