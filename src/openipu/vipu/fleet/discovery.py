# SPDX-License-Identifier: GPL-3.0-or-later
"""Discovery of agents by their multicast presence messages."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import time
from collections.abc import Callable, Sequence

import structlog
from google.protobuf.message import DecodeError

from openipu.process.failures import EndpointError
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.agent_api.multicast import MAX_MESSAGE_BYTES, interface_index, membership
from openipu.vipu.fleet.status import DiscoveredAgent

EXPIRY = 17.5  # seconds: three and a half missed messages
MAX_AGENTS = 4096  # bounds the memory when a host floods the group
_MAX_PER_TURN = 256  # datagrams read before the event loop serves other work

_PKTINFO = struct.Struct("=I4s4s")
_ANCILLARY = socket.CMSG_SPACE(_PKTINFO.size)
_IP_PKTINFO = 8  # linux/in.h; missing in Python, as is the next one
_IP_MULTICAST_ALL = 49

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class Discovery:
    """Agents whose presence messages arrived recently on some interfaces.

    A message is accepted when it is a Presence that names its source host, or no host. Create and close
    it in any thread; call ``listen`` in the event loop.
    """

    def __init__(
        self, interfaces: Sequence[str], group: str, port: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Join the group. Raises EndpointError with a message for users."""
        self._clock = clock
        self._agents: dict[tuple[str, int], tuple[str, float]] = {}
        self._full = False
        self._names = {interface_index(name): name for name in interfaces}
        try:
            multicast = ipaddress.IPv4Address(group).is_multicast
        except ValueError:
            multicast = False
        if not multicast:
            raise EndpointError(
                f"{group!r} is not an IPv4 multicast group: choose one from 239.0.0.0 to 239.255.255.255."
            )
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            # Several controllers may listen on one machine. None receives from groups that only others joined.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            self._socket.bind((group, port))
            for index, name in self._names.items():
                try:
                    self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership(group, index))
                except OSError as error:
                    raise EndpointError(
                        f"Cannot listen for agents on interface {name!r}: {error.strerror}; see 'ip link'."
                    ) from None
        except OSError as error:
            self._socket.close()
            if error.errno is None:
                raise
            raise EndpointError(f"Cannot listen for agents on {group}:{port}: {error.strerror}.") from None

    def listen(self) -> None:
        """Start to receive messages."""
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def close(self) -> None:
        """Leave the group. The event loop must have ended."""
        self._socket.close()

    def discovered(self) -> list[DiscoveredAgent]:
        """Return the agents that have not expired, sorted by address and port."""
        now = self._clock()
        agents = [
            DiscoveredAgent(host, port, interface, now - seen)
            for (host, port), (interface, seen) in list(self._agents.items())
            if now - seen <= EXPIRY
        ]
        return sorted(agents, key=lambda entry: (ipaddress.IPv4Address(entry.host), entry.port))

    def _read(self) -> None:
        for _ in range(_MAX_PER_TURN):
            try:
                data, ancillary, flags, source = self._socket.recvmsg(MAX_MESSAGE_BYTES, _ANCILLARY)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                _log.warning("cannot receive presence messages", reason=str(error))
                return
            for level, kind, value in ancillary:
                if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO) and not flags & socket.MSG_TRUNC:
                    index, _, _ = _PKTINFO.unpack(value[: _PKTINFO.size])
                    if index in self._names:
                        self.receive(data, source[0], self._names[index])

    def receive(self, data: bytes, source: str, interface: str) -> None:
        """Record one message from an address. Invalid messages are ignored."""
        try:
            presence = contract.Presence.FromString(data)
        except DecodeError:
            return
        if presence.host not in ("", source) or not 1 <= presence.port <= 65535 or not presence.boot_id:
            return
        key = (source, presence.port)
        if key not in self._agents and len(self._agents) >= MAX_AGENTS:
            self._expire()
            if len(self._agents) >= MAX_AGENTS:
                if not self._full:
                    _log.warning("too many announced agents, further ones are ignored", limit=MAX_AGENTS)
                self._full = True
                return
        self._agents[key] = interface, self._clock()

    def _expire(self) -> None:
        now = self._clock()
        for key, (_, seen) in list(self._agents.items()):
            if now - seen > EXPIRY:
                del self._agents[key]
