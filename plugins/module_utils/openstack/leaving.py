# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes, when, and what keeps it from going. Pure; what does is raised as a SentenceError."""

from __future__ import annotations

import ipaddress
import typing as t

from ..reconcile import Action, Object, SentenceError, Step
from .port_checks import GATEWAY, described
from .reading import Seen
from .resources import EVERYBODY, INTERFACE, NETWORK, PORT, ROUTER, SHARE, SUBNET, overlap

GONE = (Action.DELETE, Action.RECREATE)
_ALWAYS_FIRST = (SHARE, INTERFACE, ROUTER, PORT)
# Ports that Neutron makes and removes itself.
_OF_NEUTRON = (
    "network:dhcp",
    "network:distributed",
    "network:floatingip_agent_gateway",
    "network:router_centralized_snat",  # with the interface that it is for
)


def goes_first(step: Step, steps: t.Iterable[Step]) -> bool:
    """Whether something is removed before anything is made and changed.

    Others hold on to subnets and networks until they are changed, so that these go last, unless their place is
    needed: the addresses of a subnet, of any network since both may be from one pool, or the VLAN of a network.
    """
    if step.family not in (SUBNET, NETWORK):
        return step.family in _ALWAYS_FIRST
    before = step.before or {}
    coming = [other.wanted for other in steps if other.family is step.family and other.action is Action.CREATE]
    if step.family is SUBNET:
        return any(overlap(item["cidr"], before["cidr"]) for item in coming if item)
    place = _vlan(before)
    return place[1] is not None and place in [_vlan(item) for item in coming if item]


def _vlan(network: Object) -> tuple[t.Any, t.Any]:
    return network.get("physical_network"), network.get("vlan")


def check_left(steps: list[Step], seen: Seen) -> None:
    """Refuse to remove networks, subnets and shares on which somebody still has a port.

    Neutron would refuse that too, but only after what goes before them has gone.
    """
    gone = [step for step in steps if step.action in GONE and step.before]
    left = _Left(steps, gone, seen)
    for step in gone:
        before = step.before or {}
        if step.family is NETWORK:
            found = left.on(before["uuid"])
        elif step.family is SUBNET:
            found = left.addresses_of(step)
        elif step.family is SHARE and any(other.family is not SHARE for other in gone):
            found = left.by(before["uuid"])
        else:  # shares alone can be tried: the others go, and nothing else does
            continue
        if found:
            kind = step.family.kind
            raise SentenceError(
                "%s '%s' cannot be removed while %s has it in use: remove that first, or keep the %s."
                % (kind.capitalize(), step.key, described(found[0], seen.whose(found[0])), kind)
            )


class _Left:
    """The ports that are there when all is done, unless Neutron removes them itself."""

    def __init__(self, steps: list[Step], gone: list[Step], seen: Seen) -> None:
        self._steps = steps
        self._seen = seen
        self._gone = {(step.before or {})["uuid"] for step in gone}
        changed = [step for step in steps if step.action is Action.CHANGE]
        routers = self._gone | {(step.before or {})["uuid"] for step in changed if step.family is ROUTER}
        self._ports = [
            raw
            for raw in seen.raw.get(PORT.kind, ())
            if raw["id"] not in self._gone
            and raw["device_owner"] not in _OF_NEUTRON
            # The gateway of a router that goes, or gets another network.
            and not (raw["device_owner"] == GATEWAY and raw["device_id"] in routers)
        ]
        self._addresses = {
            (step.before or {})["uuid"]: (step.wanted or {})["addresses"]
            for step in changed
            if step.family is PORT and (step.wanted or {}).get("addresses") is not None
        }

    def on(self, network: str) -> list[Object]:
        """Those on a network."""
        return [raw for raw in self._ports if raw["network_id"] == network]

    def addresses_of(self, step: Step) -> list[Object]:
        """Those with an address of a subnet when that goes."""
        before = step.before or {}
        cidr = ipaddress.ip_network(before["cidr"])
        found = []
        for raw in self._ports:
            has = before["uuid"] in [fixed["subnet_id"] for fixed in raw["fixed_ips"]]
            if has and raw["id"] in self._addresses and not goes_first(step, self._steps):
                has = any(ipaddress.ip_address(address) in cidr for address in self._addresses[raw["id"]])
            if has:
                found.append(raw)
        return found

    def by(self, policy: str) -> list[Object]:
        """Those that projects have on a network by a share, and by no other one."""
        shares = {raw["id"]: raw for raw in self._seen.raw[SHARE.kind]}
        network, target = shares[policy]["object_id"], _target(shares[policy])
        others = {_target(raw) for id, raw in shares.items() if raw["object_id"] == network and id not in self._gone}
        return [
            raw
            for raw in self.on(network)
            if raw["project_id"] not in (self._seen.project, *others)
            and EVERYBODY not in others
            and target in (EVERYBODY, raw["project_id"])
        ]


def _target(policy: Object) -> str:
    return str(policy.get("target_project") or policy["target_tenant"])
