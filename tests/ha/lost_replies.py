# SPDX-License-Identifier: GPL-3.0-or-later
"""Network in front of a controller, in which a fault begins with one change: its client receives no result."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

from tests.event_loop import LoopThread
from tests.ha.controllers import Controller
from tests.integration.faults.relay import Tls, relay
from tests.waiting import until

Fault = Callable[[], object]
Done = Callable[[], object]


class LostReply:
    """Relay to a controller with a fault at the first request with a text, such as the name of its method."""

    def __init__(
        self,
        target: str,
        text: str,
        before: Fault | None = None,
        after: Fault | None = None,
        number: int = 1,
        certs: Path | None = None,
    ) -> None:
        """``before`` runs before the request is sent, and ``after`` afterwards, while replies are lost.

        After ``after``, the connection ends. ``number``: use the second request with the text, and so on. ``certs``: of
        a controller with TLS. Its administrator is the client then.
        """
        self._text, self._before, self._after, self._left = text.encode(), before, after, number
        self.happened = False
        self._loop = LoopThread()
        tls = _contexts(certs) if certs else None
        self.address = f"127.0.0.1:{self._loop.run(relay(target, lambda client: self._copy, tls))}"

    def close(self) -> None:
        self._loop.stop()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes of one direction until one side closes the connection, then close the other."""
        try:
            while data := await reader.read(1 << 16):
                begins = not self.happened and self._begins(data)
                if self.happened and self._after:
                    continue
                self.happened = self.happened or begins
                if begins and self._before:
                    await asyncio.to_thread(self._before)
                writer.write(data)
                await writer.drain()
                if begins and self._after:
                    await asyncio.to_thread(self._after)
                    return
        except (ConnectionError, TimeoutError):  # the latter: the other side does not end TLS
            pass
        finally:
            if self.happened and self._after:
                writer.transport.abort()  # without the end of TLS, for which each side would wait
            else:
                writer.close()

    def _begins(self, data: bytes) -> bool:
        self._left -= self._text in data
        return self._left == 0


def _contexts(certs: Path) -> Tls:
    """Return the TLS of a relay to a controller: for its clients, and as one of them."""
    accept = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    accept.load_cert_chain(certs / "server/server.crt", certs / "server/server.key")
    connect = ssl.create_default_context(cafile=certs / "client/ca.crt")
    connect.load_cert_chain(certs / "client/client.crt", certs / "client/client.key")
    for context in (accept, connect):
        context.set_alpn_protocols(["h2"])
    return accept, connect


# The faults of a request with a text. ``done`` is true when the controller has made the change.


def killed_before(leader: Controller, text: str, done: Done, number: int = 1, certs: Path | None = None) -> LostReply:
    """Kill the leader before the request arrives: the change is not made."""
    return LostReply(leader.address, text, before=leader.kill, number=number, certs=certs)


def killed_after(leader: Controller, text: str, done: Done, number: int = 1, certs: Path | None = None) -> LostReply:
    """Kill the leader when the change was made, before its reply."""

    def kill() -> None:
        until(done)
        leader.kill()

    return LostReply(leader.address, text, after=kill, number=number, certs=certs)


def without_etcd(leader: Controller, text: str, done: Done, number: int = 1, certs: Path | None = None) -> LostReply:
    """Cut the leader from etcd: it reports an unknown result (OPU625) or ends."""
    return LostReply(leader.address, text, before=leader.relay.cut, number=number, certs=certs)


def disconnected_after(
    leader: Controller, text: str, done: Done, number: int = 1, certs: Path | None = None
) -> LostReply:
    """Close the connection when the change was made, before its reply. The controller continues to lead."""
    return LostReply(leader.address, text, after=lambda: until(done), number=number, certs=certs)
