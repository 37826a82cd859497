# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be seen to go wrong with ports before any is written. Pure; mistakes are raised as a SentenceError."""

from __future__ import annotations

import ipaddress
import typing as t

from ..reconcile import Action, Object, SentenceError, Step
from .reading import ROUTER_PORTS, Seen
from .resources import NETWORK, PORT, SUBNET
from .wanted import Objects

Network: t.TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

GATEWAY = "network:router_gateway"
_HELD = ("network", "mac", "addresses", "hardware_offload")  # of a port in use: Nova and its guest rely on them


def check_ports(steps: list[Step], objects: Objects, seen: Seen) -> None:
    """Refuse to disturb ports in use, and MACs and addresses that others have or that fit no subnet."""
    work = [step for step in steps if step.family is PORT]
    for step in work:
        _check_bound(step)
    moving = {step.before["uuid"] for step in work if step.before and step.action is not Action.NONE}
    network_id = network_ids(steps, seen)
    macs: dict[tuple[str, str], Object] = {}
    addresses: dict[tuple[str, str], Object] = {}
    for raw in seen.raw.get(PORT.kind, ()):
        if raw["id"] in moving:
            continue
        macs[raw["network_id"], raw["mac_address"]] = raw
        for fixed in raw["fixed_ips"]:
            addresses[raw["network_id"], fixed["ip_address"]] = raw
    subnets = _subnets(objects, seen, network_id)
    for step in work:
        item = step.wanted
        if item is None or step.action is Action.NONE:
            continue
        network, id = item["network"], network_id(item["network"])
        for value, taken, what in (
            *((mac, macs, "MAC") for mac in filter(None, [item.get("mac")])),
            *((address, addresses, "Address") for address in item.get("addresses") or ()),
        ):
            other = taken.get((id, value))
            if other and other["id"] != (step.before or {}).get("uuid"):
                raise SentenceError(
                    "%s %s of port '%s' is that of %s on network '%s': remove that one, or correct this one."
                    % (what, value, step.key, described(other), network)
                )
        for address in item.get("addresses") or ():
            if not any(ipaddress.ip_address(address) in cidr for cidr in subnets.get(id, ())):
                raise SentenceError(
                    "Address %s of port '%s' is in no subnet of network '%s': correct it, or add a subnet."
                    % (address, step.key, network)
                )


def network_ids(steps: t.Iterable[Step], seen: Seen) -> t.Callable[[str], str]:
    """How networks are told apart that are named: other projects may have some with the same names."""
    coming = {step.key for step in steps if step.family is NETWORK and step.action is Action.CREATE}
    return lambda name: name if name in coming else seen.id(NETWORK, name) or name


def _check_bound(step: Step) -> None:
    before = step.before or {}
    if not before.get("bound") or step.action is Action.NONE:
        return
    held = [f.name for f in step.family.fields if f.name in _HELD and step.wanted and f.differs(step.wanted, before)]
    if step.wanted is None or held or step.action is Action.RECREATE:
        raise SentenceError(
            "Port '%s' is in use by %s, so %s: detach it first."
            % (
                step.key,
                before["bound"],
                "its %s cannot be changed" % " and ".join(held) if held else "it cannot be removed",
            )
        )


def described(raw: Object, whose: str = "") -> str:
    """A port in a sentence."""
    if raw["device_owner"] in ROUTER_PORTS:
        return "a router" + whose
    if raw["device_owner"] == "network:dhcp":
        return "a DHCP server"
    if raw["device_owner"] == GATEWAY:
        return "the gateway of a router"
    use = ", in use by %s," % raw["device_owner"] if raw["device_owner"] else ""
    return "port '%s'%s%s" % (raw["name"] or raw["id"], whose, use)


def _subnets(objects: Objects, seen: Seen, network_id: t.Callable[[str], str]) -> dict[str, list[Network]]:
    """The subnets of every network, by its id, those that are asked for among them."""
    found: dict[str, list[Network]] = {}
    for raw in seen.raw.get(SUBNET.kind, ()):
        found.setdefault(raw["network_id"], []).append(ipaddress.ip_network(raw["cidr"]))
    for item in objects.get(SUBNET.kind, ()):
        found.setdefault(network_id(item["network"]), []).append(ipaddress.ip_network(item["cidr"]))
    return found
