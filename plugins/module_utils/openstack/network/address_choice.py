# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of ports that may have any of several addresses. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Object, PlanError
from .families import NETWORK, PORT
from .parse import NetworkState


def choose_addresses(desired: t.Iterable[Object], actual: t.Iterable[Object], state: NetworkState) -> list[Object]:
    """Return the desired ports, with an address in place of ``address_choices``. Raises PlanError.

    Both lists are those of ``match_ports``. A port in use, or with one of the addresses, keeps its addresses, except in
    another network, from which it moves. Others get the first address that no port of their network has, and that
    Neutron has not rejected for this task.
    """
    desired = [dict(item) for item in desired]
    existing = {port["name"]: port for port in actual}
    used = {
        (raw["network_id"], each["ip_address"]) for raw in state.raw.get(PORT.kind, ()) for each in raw["fixed_ips"]
    }
    given = {(item["network"], each) for item in desired for each in item.get("addresses") or ()}
    given |= state.rejected_addresses
    for item in desired:
        choices = item.get("address_choices")
        port = existing.get(item["name"])
        if not choices or (port and (port["bound"] or _is_chosen(item, port))):
            continue
        network, id = item["network"], state.id(NETWORK, item["network"])
        free = next((each for each in choices if (id, each) not in used and (network, each) not in given), None)
        if free is None:
            raise PlanError(
                "Cannot choose an address for port '%s': all of %s are in use in network '%s'. Add an address, or "
                "remove such a port." % (item["name"], ", ".join(choices), network)
            )
        given.add((network, free))
        item["addresses"] = [free]
    return desired


def _is_chosen(item: Object, port: Object) -> bool:
    return port["network"] == item["network"] and not set(item["address_choices"]).isdisjoint(port["addresses"])
