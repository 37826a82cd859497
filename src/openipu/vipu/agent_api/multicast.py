# SPDX-License-Identifier: GPL-3.0-or-later
"""Multicast for the discovery of agents: group, port, limits and socket options."""

from __future__ import annotations

import socket
import struct

from openipu.process.failures import EndpointError

DISCOVERY_GROUP = "239.192.73.80"  # in the organisation-local scope of RFC 2365
MAX_MESSAGE_BYTES = 512  # a controller ignores longer messages


def interface_index(name: str) -> int:
    """Return the index of a network interface. Raises EndpointError with a message for users."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        names = ", ".join(sorted(interface for _, interface in socket.if_nameindex()))
        raise EndpointError(
            f"Cannot find network interface {name!r}: this machine does not have it. Choose from {names}."
        ) from None


def membership(group: str, index: int) -> bytes:
    """Return a ``struct ip_mreqn`` for a multicast group on one interface, whatever its addresses."""
    return struct.pack("=4s4si", socket.inet_aton(group), socket.inet_aton("0.0.0.0"), index)  # noqa: S104
