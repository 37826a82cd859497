# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reader of the key ``controller`` in pod.yml: hosts and port of the V-IPU controller."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from . import model, spec
from .mistakes import LeftOut, Mistakes, unknown
from .source import Block, Items

_WITH_PORT = re.compile(r"[^:]*:\d*")


def read(
    top: Block, racks: t.Sequence[model.Rack], mistakes: Mistakes, left_out: LeftOut
) -> tuple[tuple[str, ...], int]:
    """Return hosts and port of the controller: as given, or those of a server on the management network.

    Record mistakes of its keys. Raises PodError.
    """
    servers = {server.name: server for rack in racks for server in rack.servers}
    block = spec.POD.child(top, "controller", mistakes)
    doubt = bool(block.invalid) or "controller" in top.invalid
    hosts = _hosts(block, mistakes)
    if hosts is not None:
        return hosts, block["port"]
    name = block.get("server")
    if name is None:
        name = next((s.name for s in servers.values() if "controller" in s.roles), None)
        if name is None:
            message = (
                "the address of the controller is unknown: give a server the role 'controller', or set controller.host"
            )
            raise block.error(message).unless(doubt or left_out.servers)
    elif name not in servers:
        message = "controller: %s" % unknown("server", name, servers)
        raise block.error(message, "server").unless(left_out.explains(name, "server"))
    if "controller" not in servers[name].roles:
        message = "controller: server '%s' does not have the role 'controller': add it to its 'roles'" % name
        raise block.error(message, "server").unless(left_out.servers)
    address = servers[name].interface("p2").address
    if address is None:
        message = "server '%s' has no management address: set one, or set controller.host" % name
        doubt = model.MANAGEMENT in left_out.subnets or servers[name].rack in left_out.numbers
        raise block.error(message, "server").unless(doubt or left_out.servers)
    return (address,), block["port"]


def _hosts(block: Block, mistakes: Mistakes) -> tuple[str, ...] | None:
    """Return the valid ones of the given hosts, None when they are omitted. Record mistakes. Raises PodError."""
    given = block.get("host")
    if given is None or given == [""]:
        return None
    if not given:
        message = "controller: the list 'host' is empty: add at least one name or address, or omit 'host'"
        raise block.error(message, "host")
    lines = given.lines if isinstance(given, Items) else [None]
    hosts = []
    seen = set()
    for host, line in zip(given, lines, strict=True):
        with mistakes.collect():
            if "/" in host:
                message = "controller: host '%s' is not a name or address: write the host only, and set controller.port"
                raise block.error(message % host, "host", line)
            if _WITH_PORT.fullmatch(host):
                message = "controller: host '%s' has a port: remove it, and set controller.port"
                if len(given) > 1:
                    message += " for all hosts"
                raise block.error(message % host, "host", line)
            if _normal(host) in seen:
                raise block.error("controller: host '%s' is listed twice: remove one of them" % host, "host", line)
            seen.add(_normal(host))
            hosts.append(host)
    return tuple(hosts)


def _normal(host: str) -> str:
    """Return the common form of all notations of a host."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host.lower()
