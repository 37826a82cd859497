# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assignment of actual ports to desired ones, by MAC and by name. No I/O."""

from __future__ import annotations

import typing as t

from ...reconcile import Object

Candidates = t.Callable[[Object], t.Iterable[Object]]


def match_ports(
    desired: t.Iterable[Object], actual: t.Iterable[Object], owner: str
) -> tuple[list[Object], list[Object]]:
    """Return copies of both lists in which each desired port has the same name as its actual port.

    A MAC identifies a machine. An owned port with the desired MAC therefore moves, with the new name and
    addresses, even from another network. Otherwise the name decides: the machine has a new MAC. Other actual ports
    with the name of a desired port, or without a name, are named by their id.
    """
    desired, actual = [dict(item) for item in desired], [dict(port) for port in actual]
    own_first = sorted(actual, key=lambda port: port["owner"] != owner)
    by_mac: dict[str, list[Object]] = {}
    by_name: dict[tuple[str, str], list[Object]] = {}
    for port in own_first:
        by_name.setdefault((port["network"], port["name"]), []).append(port)
        if port["owner"] == owner:
            by_mac.setdefault(port["mac"], []).append(port)

    def same_mac(item: Object) -> list[Object]:
        return by_mac.get(item.get("mac", ""), [])

    assigned: dict[str, Object] = {}  # id of the actual port -> desired port
    _assign(desired, assigned, lambda item: [port for port in same_mac(item) if port["network"] == item["network"]])
    _assign(desired, assigned, lambda item: by_name.get((item["network"], item["name"]), []))
    _assign(desired, assigned, same_mac)
    keys = {item["name"] for item in desired}
    for port in own_first:
        item = assigned.get(port["uuid"])
        if item is None:
            if not port["name"] or port["name"] in keys:
                port["name"] = ("%s (%s)" % (port["name"], port["uuid"])).strip()
            keys.add(port["name"])
            continue
        if "subnets" in item and set(item.get("addresses", ())) <= set(port["addresses"]):
            item["addresses"] = port["addresses"]  # Neutron chose the others from the subnets
        if port["name"] != item["name"]:
            port["former_name"], port["name"] = port["name"] or port["uuid"], item["name"]
            item["former_name"] = ""
    return desired, actual


def _assign(desired: list[Object], assigned: dict[str, Object], candidates: Candidates) -> None:
    """Assign the first free candidate to each desired port that has no actual port yet."""
    served = {id(item) for item in assigned.values()}
    for item in desired:
        if id(item) in served:
            continue
        port = next((port for port in candidates(item) if port["uuid"] not in assigned), None)
        if port:
            assigned[port["uuid"]] = item
