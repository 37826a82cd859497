# SPDX-License-Identifier: GPL-3.0-or-later
"""An agent tells of itself by multicast, so that a controller that listens can discover it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
from collections.abc import Callable, Sequence

import structlog

from openipu.vipu.agent.contract import agent
from openipu.vipu.model import DISCOVERY_GROUP, DISCOVERY_PORT

INTERVAL = 5.0  # seconds
# Presence is for the machines of one management network.
TIME_TO_LIVE = 1
MOST_BYTES = 512  # of one message; a controller ignores longer ones

_log: structlog.stdlib.BoundLogger = structlog.get_logger("virm-agent")


def interface_index(name: str) -> int:
    """The index of a network interface; raises OSError with a sentence."""
    try:
        return socket.if_nametoindex(name)
    except OSError:
        there = ", ".join(sorted(interface for _, interface in socket.if_nameindex()))
        raise OSError(f"There is no network interface {name!r}; this machine has: {there}.") from None


def membership(group: str, index: int) -> bytes:
    """``struct ip_mreqn``: a multicast group on one interface, whatever addresses that has."""
    return struct.pack("=4s4si", socket.inet_aton(group), socket.inet_aton("0.0.0.0"), index)  # noqa: S104


class Announcer:
    """Sends the presence of one agent on some interfaces, at once and then every ``interval`` seconds.

    It sends from the agent's own address, where that is one: a controller believes only messages
    that come from the host that they name. An agent that listens on all addresses names none, and
    is taken to be where its message came from.
    """

    def __init__(
        self,
        host: str,
        port: Callable[[], int],
        boot_id: Callable[[], str],
        interfaces: Sequence[str],
        *,
        group: str = DISCOVERY_GROUP,
        group_port: int = DISCOVERY_PORT,
        interval: float = INTERVAL,
    ) -> None:
        """See the class."""
        self._host = "" if host in ("0.0.0.0", "::", "") else host  # noqa: S104
        self._port = port
        self._boot_id = boot_id
        self._interfaces = tuple(interfaces)
        self._target = (group, group_port)
        self._interval = interval
        self._sockets: list[socket.socket] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Open the sockets and begin; raises OSError with a sentence. Must be called in the event loop."""
        if self._host:
            try:
                ipaddress.IPv4Address(self._host)
            except ValueError:
                raise OSError(
                    f"Presence is multicast over IPv4, and {self._host!r} is no IPv4 address: "
                    "let the agent listen on one, or do not announce it."
                ) from None
        for name in self._interfaces:
            index = interface_index(name)
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            self._sockets.append(sender)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, membership("0.0.0.0", index))  # noqa: S104
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, TIME_TO_LIVE)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            if self._host:
                sender.bind((self._host, 0))
        if self._sockets:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End, and close the sockets."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        for sender in self._sockets:
            sender.close()
        self._sockets.clear()

    async def _run(self) -> None:
        said = ""
        while True:
            message = agent.Presence(host=self._host, port=self._port(), boot_id=self._boot_id()).SerializeToString()
            for sender in self._sockets:
                try:
                    sender.sendto(message, self._target)
                    said = ""
                except OSError as error:  # an interface that is down now may come up again
                    if str(error) != said:
                        said = str(error)
                        _log.warning("presence not sent", group=self._target[0], reason=said)
            await asyncio.sleep(self._interval)
