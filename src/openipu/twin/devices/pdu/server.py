# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP agent of a PDU: its samples and its traps."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from openipu.twin.devices.pdu.managed import ManagedPdu
from openipu.twin.devices.pdu.pdu import Pdu
from openipu.twin.devices.pdu.traps import Traps
from openipu.twin.devices.snmp import server as snmp

TRAP_PORT = 162
_SAMPLE_EVERY = 1.0  # s
_SAVE_EVERY = 60  # samples


async def serve(pdu: Pdu, host: str, port: int = snmp.PORT, *, trap_port: int = TRAP_PORT) -> Server:
    """Start the agent of a PDU at an IPv4 address; port 0 selects a free one. Raises OSError.

    Traps are sent from the same address, to ``trap_port`` of the configured receivers.
    """
    sock = snmp.bind(host, port)
    try:
        server = Server(pdu, sock, trap_port)
        await server.start()
    except BaseException:
        sock.close()
        raise
    return server


class Server(snmp.Server):
    """A running agent, until ``close``. ``serve`` creates it."""

    def __init__(self, pdu: Pdu, sock: socket.socket, trap_port: int) -> None:
        super().__init__(ManagedPdu(pdu), sock)
        self.pdu = pdu
        self._traps = Traps(pdu, self.host, trap_port, self.send)
        self._sampling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start to receive requests and to send traps."""
        await super().start()
        self.pdu.listeners.append(self._traps.send)
        self._sampling = asyncio.create_task(self._sample())

    async def close(self) -> None:
        """Stop receiving requests, and save the counters of the PDU."""
        if self._sampling is None:
            return
        sampling, self._sampling = self._sampling, None
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampling
        self.pdu.listeners.remove(self._traps.send)
        await super().close()
        self.pdu.close()

    async def _sample(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(_SAMPLE_EVERY)
            self.pdu.sample()
            count += 1
            if count % _SAVE_EVERY == 0:
                self.pdu.save()
