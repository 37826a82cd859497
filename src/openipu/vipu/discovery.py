# SPDX-License-Identifier: GPL-3.0-or-later
"""Hearing the agents that multicast their presence."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import time
from collections.abc import Callable, Sequence

import structlog
from google.protobuf.message import DecodeError

from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.agent.presence import MOST_BYTES, interface_index, membership
from openipu.vipu.ports import DiscoveredAgent

EXPIRY = 17.5  # seconds: three and a half presences that did not come
MOST_AGENTS = 4096  # whoever floods the group with names fills no more memory than that
_MOST_PER_TURN = 256  # datagrams read before others get their turn

_PKTINFO = struct.Struct("=I4s4s")
_ANCILLARY = socket.CMSG_SPACE(_PKTINFO.size)
_IP_PKTINFO = 8  # linux/in.h; Python has no name for these two
_IP_MULTICAST_ALL = 49

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Discovery:
    """The agents that were heard lately on some interfaces.

    A message counts when it is a Presence that names the host it comes from, or none. Made and
    closed in any thread; ``listen`` belongs to the event loop.
    """

    def __init__(
        self, interfaces: Sequence[str], group: str, port: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Join the group; raises OSError with a sentence."""
        self._clock = clock
        self._heard: dict[tuple[str, int], tuple[str, float]] = {}
        self._full = False
        self._names = {interface_index(name): name for name in interfaces}
        try:
            multicast = ipaddress.IPv4Address(group).is_multicast
        except ValueError:
            multicast = False
        if not multicast:
            raise OSError(f"{group!r} is no IPv4 multicast group: choose one from 239.0.0.0 to 239.255.255.255.")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            # Several controllers on one machine may listen; none hears what others joined.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            self._socket.bind((group, port))
            for index, name in self._names.items():
                try:
                    self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership(group, index))
                except OSError as error:
                    raise OSError(
                        f"Cannot listen for agents on interface {name!r}: {error.strerror}; see 'ip link'."
                    ) from None
        except OSError as error:
            self._socket.close()
            if error.errno is None:
                raise
            raise OSError(f"Cannot listen for agents on {group}:{port}: {error.strerror}.") from None

    def listen(self) -> None:
        """Hear from now on."""
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def close(self) -> None:
        """Leave the group; the event loop must be over."""
        self._socket.close()

    def discovered(self) -> list[DiscoveredAgent]:
        """Who was heard lately, in order of address and port."""
        now = self._clock()
        heard = [
            DiscoveredAgent(host, port, interface, now - seen)
            for (host, port), (interface, seen) in list(self._heard.items())
            if now - seen <= EXPIRY
        ]
        return sorted(heard, key=lambda entry: (ipaddress.IPv4Address(entry.host), entry.port))

    def _read(self) -> None:
        for _ in range(_MOST_PER_TURN):
            try:
                data, ancillary, flags, source = self._socket.recvmsg(MOST_BYTES, _ANCILLARY)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                _log.warning("presence not read", reason=str(error))
                return
            for level, kind, value in ancillary:
                if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO) and not flags & socket.MSG_TRUNC:
                    index, _, _ = _PKTINFO.unpack(value[: _PKTINFO.size])
                    if index in self._names:
                        self.hear(data, source[0], self._names[index])

    def hear(self, data: bytes, source: str, interface: str) -> None:
        """Take over one message from an address; a wrong one is ignored."""
        try:
            presence = contract.Presence.FromString(data)
        except DecodeError:
            return
        if presence.host not in ("", source) or not 1 <= presence.port <= 65535 or not presence.boot_id:
            return
        key = (source, presence.port)
        if key not in self._heard and len(self._heard) >= MOST_AGENTS:
            self._expire()
            if len(self._heard) >= MOST_AGENTS:
                if not self._full:
                    _log.warning("more agents announce themselves than are remembered", most=MOST_AGENTS)
                self._full = True
                return
        self._heard[key] = interface, self._clock()

    def _expire(self) -> None:
        now = self._clock()
        for key, (_, seen) in list(self._heard.items()):
            if now - seen > EXPIRY:
                del self._heard[key]
