# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan: the steps of servers and their ports, and all checks of them. Pure, except for lookups by name."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ...reconcile import Object, Step, UserError, plan
from ..common.steps import CREATIONS
from ..network.checks import check_desired
from ..network.families import PORT, Objects
from ..network.families import desired as desired_network
from ..network.limits import Limits
from ..network.parse import NetworkState
from ..network.plan import Deletions, plan_network
from ..network.port_matching import match_ports
from .families import SERVER, desired_ports, port_name

Lookup = t.Callable[[Object], t.Any]  # raises UserError when the image or flavor of a server does not exist


@dataclass(frozen=True)
class Servers:
    """Desired and actual servers of a task."""

    owner: str
    desired: list[Object]
    actual: list[Object]


def check_desired_ports(servers: t.Iterable[Object], owner: str) -> None:
    """Reject servers whose ports conflict. No I/O. Raises UserError."""
    check_desired(_port_objects(servers, owner))


def plan_ports(servers: Servers, state: NetworkState, limits: Limits) -> list[Step]:
    """Return the steps of the ports of desired servers. Raises UserError."""
    deletions = Deletions(despite_doubt=True)  # recreates only unused ports of these servers
    return plan_network(_port_objects(servers.desired, servers.owner), state, servers.owner, deletions, limits)


def _port_objects(servers: t.Iterable[Object], owner: str) -> Objects:
    return desired_network({"ports": desired_ports(servers)}, owner)


def plan_port_removal(servers: Servers, state: NetworkState) -> list[Step]:
    """Return the removal of the ports that servers have, and of unused ports that were created for them."""
    _desired, ports = match_ports([], state.objects[PORT.kind], servers.owner)
    ids = {item["uuid"] for item in servers.actual}
    devices = {raw["id"]: raw["device_id"] for raw in state.raw[PORT.kind]}
    prefixes = tuple(port_name(server, {"network": ""}) for server in servers.desired)
    own = [port for port in ports if port["owner"] == servers.owner]
    removed = [
        port["name"]
        for port in own
        if devices[port["uuid"]] in ids or (not devices[port["uuid"]] and port["name"].startswith(prefixes))
    ]
    return plan(PORT, [], own, absent=removed)


def plan_servers(servers: Servers, recreate: bool) -> list[Step]:
    """Return the steps of servers. One that is not usable is always recreated. Raises UserError."""
    _check_owners(servers)
    failed = {item["name"] for item in servers.actual if not item["usable"]}
    usable = [item for item in servers.desired if item["name"] not in failed]
    restarted = [item for item in servers.desired if item["name"] in failed]
    return [
        *plan(SERVER, usable, servers.actual, recreate=recreate),
        *plan(SERVER, restarted, servers.actual, recreate=True),
    ]


def plan_server_removal(servers: Servers) -> list[Step]:
    """Return the removal of servers. Raises UserError."""
    _check_owners(servers)
    return plan(SERVER, [], servers.actual, absent=[item["name"] for item in servers.desired])


def check_attachable(ports: t.Iterable[Step], servers: t.Iterable[Step]) -> None:
    """Reject new ports of existing servers, which would never be attached. Raises UserError."""
    created = {step.key for step in ports if step.action in CREATIONS}
    for step in servers:
        networks = (step.desired or {}).get("networks") or ()
        new = [name for name in (port_name({"name": step.key}, network) for network in networks) if name in created]
        if new and step.action not in CREATIONS:
            raise UserError(
                "Cannot add port '%s' to server '%s': only a new server gets ports, and this one exists. Nothing was "
                "changed. Omit this network, or remove the server first, which loses the data on its disks."
                % (new[0], step.key)
            )


def check_startable(steps: t.Iterable[Step], lookup: Lookup) -> None:
    """Reject new servers without an image or flavor, before their ports are created."""
    for step in steps:
        if step.action in CREATIONS:
            lookup(step.desired or {})


def _check_owners(servers: Servers) -> None:
    for item in servers.actual:
        if item["owner"] != servers.owner:
            raise UserError(
                "Cannot change server '%s': it does not belong to '%s'. Choose another name, or remove that server."
                % (item["name"], servers.owner)
            )
