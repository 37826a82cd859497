# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running interfaces of a host, and those that are required to manage it."""

from __future__ import annotations

import json
import os
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ..reconcile import Object, UserError
from .commands import Host

_MELLANOX = "0x15b3"


@dataclass(frozen=True)
class Link:
    """Interface; ``kind`` is empty for a port of a card, ``data`` are the attributes of a bond or a VLAN."""

    name: str
    kind: str
    master: str
    parent: str
    mtu: int
    addresses: tuple[str, ...]
    data: dict[str, t.Any]


def fetch_links(host: Host) -> dict[str, Link]:
    """Return all interfaces, by name."""
    links = {}
    for item in json.loads(host.run("ip", "-json", "-details", "address", "show")):
        info = item.get("linkinfo", {})
        addresses = ["%s/%d" % (a["local"], a["prefixlen"]) for a in item["addr_info"] if a.get("scope") == "global"]
        links[item["ifname"]] = Link(
            item["ifname"],
            info.get("info_kind", ""),
            item.get("master", ""),
            item.get("link", ""),
            item["mtu"],
            tuple(addresses),
            info.get("info_data", {}),
        )
    return links


def bond_object(links: dict[str, Link], name: str) -> list[Object]:
    """Return a running bond in the form that the engine compares; empty when it does not exist."""
    link = links.get(name)
    if link is None or link.kind != "bond":
        return []
    names = {"mode": "mode", "ad_lacp_rate": "lacp_rate", "xmit_hash_policy": "hash_policy"}
    fields = {ours: link.data[theirs] for theirs, ours in names.items() if theirs in link.data}
    members = sorted(other.name for other in links.values() if other.master == name)
    return [{"name": name, "mtu": link.mtu, "members": members, **fields}]


def vlan_objects(links: dict[str, Link], bond: str) -> list[Object]:
    """Return the running VLANs of a bond in the form that the engine compares."""
    return [
        {"name": link.name, "id": link.data.get("id"), "mtu": link.mtu, "addresses": list(link.addresses)}
        for link in links.values()
        if link.kind == "vlan" and link.parent == bond
    ]


def mellanox_ports(links: dict[str, Link]) -> list[str]:
    """Return the ports of the host's Mellanox cards, without virtual functions and their representors."""
    found = []
    for folder in sorted(Path("/sys/class/net").iterdir()):
        virtual = (folder / "device/physfn").exists()
        if (
            folder.name in links
            and read_value(folder / "device/vendor") == _MELLANOX
            and not virtual
            and _is_port(folder)
        ):
            found.append(folder.name)
    return found


def _is_port(folder: Path) -> bool:
    """Return whether a device is a port, named like p0 or not at all. A representor is named like pf0vf3."""
    name = read_value(folder / "phys_port_name")
    return not name or re.match(r"^p\d+$", name) is not None


def read_value(path: Path) -> str:
    """Return the value of a kernel file; empty when it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def management_interfaces(host: Host, links: dict[str, Link]) -> set[str]:
    """Return the interfaces of this login and of the default route, without which the host is not reachable."""
    routes = json.loads(host.run("ip", "-json", "route", "show", "default") or "[]")
    found = {route["dev"] for route in routes if "dev" in route}
    address = _login_address()
    found.update(name for name, link in links.items() if address in [a.partition("/")[0] for a in link.addresses])
    return found


def _login_address() -> str:
    """Return the local address of the SSH login. Parent processes are searched too, because sudo drops the variable."""
    pid = os.getpid()
    while pid > 1:
        try:
            process = Path("/proc/%d" % pid)
            environment = (process / "environ").read_bytes()
            pid = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found = re.search(rb"(?:^|\0)SSH_CONNECTION=([^\0]*)", environment)
        if found and len(found.group(1).split()) == 4:
            return found.group(1).split()[2].decode()
    return ""


def check_members(host: Host, links: dict[str, Link], bond: str, members: t.Sequence[str]) -> None:
    """Raise UserError when a member does not exist or is in use."""
    managed = management_interfaces(host, links)
    for name in members:
        link = links.get(name)
        if link is None:
            cards = ", ".join(sorted(n for n, one in links.items() if not one.kind and n != "lo"))
            raise UserError(
                "Cannot bond interface '%s': it does not exist on this host. Set members to some of %s." % (name, cards)
            )
        if name in managed:
            raise UserError(
                "Cannot bond interface '%s': it is used to manage this host. Bond other interfaces, or manage the host "
                "through another one." % name
            )
        if link.master not in ("", bond):
            raise UserError(
                "Cannot bond interface '%s': it belongs to '%s'. Remove it from there first." % (name, link.master)
            )
        if link.addresses:
            raise UserError(
                "Cannot bond interface '%s': it has the address %s. Remove the address, also from its configuration."
                % (name, link.addresses[0])
            )
