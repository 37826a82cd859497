# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of planned ports, before anything is written. Pure; each raises UserError."""

from __future__ import annotations

import ipaddress
import typing as t

from ...reconcile import Action, Object, Step, UserError
from .families import NETWORK, PORT, SUBNET, Objects
from .parse import ROUTER_PORTS, NetworkState

Network: t.TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

GATEWAY = "network:router_gateway"
# Fields of a bound port that Nova and its guest depend on.
_FIXED_WHEN_BOUND = ("network", "mac", "addresses", "hardware_offload")


def check_ports(steps: list[Step], desired: Objects, state: NetworkState) -> None:
    """Reject changes of bound ports, MACs and addresses of other ports, and addresses outside all subnets."""
    port_steps = [step for step in steps if step.family is PORT]
    for step in port_steps:
        _check_bound(step)
    changed = {step.before["uuid"] for step in port_steps if step.before and step.action is not Action.NONE}
    network_id = network_ids(steps, state)
    macs: dict[tuple[str, str], Object] = {}
    addresses: dict[tuple[str, str], Object] = {}
    for raw in state.raw.get(PORT.kind, ()):
        if raw["id"] in changed:
            continue
        macs[raw["network_id"], raw["mac_address"]] = raw
        for fixed in raw["fixed_ips"]:
            addresses[raw["network_id"], fixed["ip_address"]] = raw
    subnets = _subnets(desired, state, network_id)
    for step in port_steps:
        item = step.desired
        if item is None or step.action is Action.NONE:
            continue
        network, id = item["network"], network_id(item["network"])
        for value, taken, title in (
            *((mac, macs, "MAC") for mac in filter(None, [item.get("mac")])),
            *((address, addresses, "address") for address in item.get("addresses") or ()),
        ):
            other = taken.get((id, value))
            if other and other["id"] != (step.before or {}).get("uuid"):
                raise UserError(
                    "Cannot use %s %s for port '%s': it belongs to %s on network '%s'. Set another %s, "
                    "or free this one first." % (title, value, step.key, describe_port(other), network, title)
                )
        for address in item.get("addresses") or ():
            if not any(ipaddress.ip_address(address) in cidr for cidr in subnets.get(id, ())):
                raise UserError(
                    "Cannot use address %s for port '%s': no subnet of network '%s' contains it. Correct it, or add a "
                    "subnet." % (address, step.key, network)
                )


def network_ids(steps: t.Iterable[Step], state: NetworkState) -> t.Callable[[str], str]:
    """Return a function from the name of a network to its id, or to its name when the plan creates it.

    Networks of other projects can have the same name.
    """
    created = {step.key for step in steps if step.family is NETWORK and step.action is Action.CREATE}
    return lambda name: name if name in created else state.id(NETWORK, name) or name


def _check_bound(step: Step) -> None:
    before = step.before or {}
    if not before.get("bound") or step.action is Action.NONE:
        return
    fields = [f for f in step.family.fields if f.name in _FIXED_WHEN_BOUND]
    changes = [f.name for f in fields if step.desired and f.differs(step.desired, before)]
    if step.desired is None or changes or step.action is Action.RECREATE:
        operation = "change %s of" % " and ".join(changes) if changes else "remove"
        raise UserError(
            "Cannot %s port '%s': it is in use by %s. Detach it first." % (operation, step.key, before["bound"])
        )


def describe_port(raw: Object, project: str = "") -> str:
    """Return a port for messages; ``project`` is the suffix that names its project."""
    if raw["device_owner"] in ROUTER_PORTS:
        return "a router" + project
    if raw["device_owner"] == "network:dhcp":
        return "a DHCP server"
    if raw["device_owner"] == GATEWAY:
        return "the gateway of a router"
    use = " (in use by %s)" % raw["device_owner"] if raw["device_owner"] else ""
    return "port '%s'%s%s" % (raw["name"] or raw["id"], project, use)


def _subnets(desired: Objects, state: NetworkState, network_id: t.Callable[[str], str]) -> dict[str, list[Network]]:
    """Return the actual and desired subnets by id of the network."""
    found: dict[str, list[Network]] = {}
    for raw in state.raw.get(SUBNET.kind, ()):
        found.setdefault(raw["network_id"], []).append(ipaddress.ip_network(raw["cidr"]))
    for item in desired.get(SUBNET.kind, ()):
        found.setdefault(network_id(item["network"]), []).append(ipaddress.ip_network(item["cidr"]))
    return found
