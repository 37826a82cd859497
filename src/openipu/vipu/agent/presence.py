# SPDX-License-Identifier: GPL-3.0-or-later
"""Multicast presence messages, by which controllers discover an agent."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable, Sequence

import structlog

from openipu.process.failures import EndpointError
from openipu.shared.vipu.ports import DISCOVERY_PORT
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.agent_api.multicast import DISCOVERY_GROUP, interface_index, membership

INTERVAL = 5.0  # seconds
# Messages stay in one management network.
TIME_TO_LIVE = 1

_log: structlog.stdlib.BoundLogger = structlog.get_logger("virm-agent")


class Announcer:
    """Sender of the presence messages of one agent, at the start and then every ``interval`` seconds.

    A controller accepts only messages from the host that they name, so the source is the agent's address.
    An agent that listens on all addresses names no host; controllers then use the source address.
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
        """Announce on ``interfaces``. ``port`` and ``boot_id`` return the current values."""
        self._host = "" if host in ("0.0.0.0", "::", "") else host  # noqa: S104
        self._port = port
        self._boot_id = boot_id
        self._interfaces = tuple(interfaces)
        self._target = (group, group_port)
        self._interval = interval
        self._sockets: list[socket.socket] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Open the sockets and start. Raises EndpointError with a message for users. Call it in the event loop."""
        if self._host:
            try:
                ipaddress.IPv4Address(self._host)
            except ValueError:
                raise EndpointError(
                    f"Cannot announce the agent: {self._host!r} is not an IPv4 address, which presence messages need. "
                    "Listen on an IPv4 address, or omit --announce-interface."
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
        """Stop and close the sockets."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        for sender in self._sockets:
            sender.close()
        self._sockets.clear()

    async def _run(self) -> None:
        last_error = ""
        while True:
            message = agent.Presence(host=self._host, port=self._port(), boot_id=self._boot_id()).SerializeToString()
            for sender in self._sockets:
                try:
                    sender.sendto(message, self._target)
                    last_error = ""
                except OSError as error:  # log it once; the interface may come up again
                    if str(error) != last_error:
                        last_error = str(error)
                        _log.warning("cannot send presence", group=self._target[0], reason=last_error)
            await asyncio.sleep(self._interval)
