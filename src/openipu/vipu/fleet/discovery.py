# SPDX-License-Identifier: GPL-3.0-or-later
"""Discovery of agents by their multicast presence messages."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from google.protobuf.message import DecodeError

from openipu.process.failures import EndpointError
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.agent_api.multicast import MAX_MESSAGE_BYTES, interface_index, membership
from openipu.vipu.fleet.status import DiscoveredAgent
from openipu.vipu.fleet.token_bucket import TokenBucket

EXPIRY = 17.5  # seconds: three and a half missed messages
MAX_AGENTS = 4096  # bounds the memory when a host floods the group
MAX_AGENTS_PER_HOST = 8
NEW_PER_SECOND = 100.0  # agents that the table accepts, after NEW_AT_ONCE
NEW_AT_ONCE = 1024
CONFIRMATION = 2.5  # seconds from the first message until another one confirms an agent; half of the agents' interval
EXPIRY_INTERVAL = 1.0  # seconds between two searches for expired agents
LOG_INTERVAL = 60.0  # seconds between two warnings about ignored agents
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
        self._agents: dict[tuple[str, int], _Announced] = {}  # by host and port
        self._of_host: Counter[str] = Counter()
        self._new = TokenBucket(NEW_PER_SECOND, NEW_AT_ONCE)
        self._ignored = 0
        self._logged = -LOG_INTERVAL
        self._expired = -EXPIRY_INTERVAL
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
            DiscoveredAgent(host, port, each.interface, now - each.last)
            for (host, port), each in list(self._agents.items())
            if now - each.last <= EXPIRY
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
        key, now = (source, presence.port), self._clock()
        if known := self._agents.get(key):
            known.interface, known.last = interface, now
        elif self._admit(key, now):
            self._agents[key] = _Announced(interface, now, now)
        else:
            self._ignored += 1
            if now >= self._logged + LOG_INTERVAL:
                _log.warning("too many announced agents", ignored=self._ignored, source=source)
                self._ignored, self._logged = 0, now

    def _admit(self, key: tuple[str, int], now: float) -> bool:
        """Return whether a new agent may be added, after making room for it."""
        self._expire(now)
        if self._of_host[key[0]] >= MAX_AGENTS_PER_HOST or not self._new.allow(now):
            return False
        if len(self._agents) >= MAX_AGENTS:
            # Floods of invented agents are not confirmed. The table is in the order of the first messages.
            oldest = next((known for known, each in self._agents.items() if not each.confirmed), None)
            if oldest is None:
                return False
            self._remove(oldest)
        self._of_host[key[0]] += 1
        return True

    def _remove(self, key: tuple[str, int]) -> None:
        del self._agents[key]
        self._of_host[key[0]] -= 1
        if not self._of_host[key[0]]:
            del self._of_host[key[0]]

    def _expire(self, now: float) -> None:
        if now < self._expired + EXPIRY_INTERVAL:
            return
        self._expired = now
        for key, each in list(self._agents.items()):
            if now - each.last > EXPIRY:
                self._remove(key)


@dataclass(slots=True)
class _Announced:
    interface: str
    first: float
    last: float

    @property
    def confirmed(self) -> bool:
        """Return whether the agent announced itself again after a while."""
        return self.last - self.first >= CONFIRMATION
