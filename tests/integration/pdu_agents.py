# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs of the twin as SNMP agents in this process, and a receiver of their traps."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from openipu.twin.devices.pdu import Community, Credentials, Pdu, PduFaults, Server, User, serve
from tests.event_loop import LoopThread

HOST = "127.0.0.1"
WRITER, READER = "operator", "watcher"
AUTH_KEY, PRIV_KEY = "4uthentic-for-tests", "3ncrypted-for-tests"
READS, WRITES = "r34d-for-tests", "wr1te-for-tests"
USERS = (User(WRITER, AUTH_KEY, PRIV_KEY, write=True), User(READER, AUTH_KEY, PRIV_KEY, auth="sha256", priv="aes256"))
V3_ONLY = Credentials(USERS)
WITH_V2C = Credentials(USERS, (Community(READS), Community(WRITES, write=True)))
Result = TypeVar("Result")


class ServedPdu:
    """A PDU with a running agent; all access runs in its event loop. ``watts`` is the load of its outlets while on."""

    def __init__(self, loop: LoopThread, watts: dict[int, float], trap_port: int, pdu: Any) -> None:
        self._loop = loop
        self.watts = watts

        async def start() -> Server:
            return await serve(pdu(), HOST, 0, trap_port=trap_port)

        self.server = loop.run(start())
        self.pdu = self.server.pdu
        self.port = self.server.port

    def do(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call this in the event loop of the PDU."""
        return self._loop.call(function, *arguments)

    def set_loads(self, watts: Mapping[int, float]) -> None:
        """Set the loads of its outlets while they are on."""

        def change() -> None:
            self.watts.clear()
            self.watts.update(watts)
            self.pdu.sample()

        self.do(change)

    def fault(self, **faults: Any) -> None:
        """Replace its faults by these."""
        self.do(setattr, self.pdu, "faults", PduFaults(**faults))

    @property
    def requests(self) -> Counter[str]:
        """Number of requests accepted so far, by kind."""
        return self.do(lambda: Counter(self.server.requests))

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the connection options of our modules, for the user with write access."""
        user = {"username": WRITER, "auth_key": AUTH_KEY, "priv_key": PRIV_KEY}
        return {"host": HOST, "port": self.port, **user, "timeout": 5, "retries": 1, **more}

    def close(self) -> None:
        """Stop the agent."""
        self._loop.run(self.server.close())


class Agents:
    """An event loop in a thread, and the PDUs in it. ``unhandled`` are the uncaught errors of the loop."""

    def __init__(self) -> None:
        self._loop = LoopThread()
        self.unhandled = self._loop.unhandled
        self._served: list[ServedPdu] = []

    def pdu(
        self,
        name: str = "pdu1",
        model: str = "AP8886",
        credentials: Credentials = V3_ONLY,
        watts: Mapping[int, float] | None = None,
        trap_port: int = 9,
        folder: Path | None = None,
    ) -> ServedPdu:
        """Start a PDU that sends its traps to ``trap_port``; no program listens on the default."""
        drawn = dict(watts or {})
        served = ServedPdu(
            self._loop, drawn, trap_port, lambda: Pdu(name, model, lambda: dict(drawn), credentials, folder)
        )
        self._served.append(served)
        return served

    def close(self) -> None:
        for served in self._served:
            served.close()
        self._loop.stop()


@contextmanager
def agents_of_pdus() -> Iterator[Agents]:
    """Yield an event loop for PDUs, stop it afterwards, and assert that it has no uncaught errors."""
    agents = Agents()
    try:
        yield agents
    finally:
        agents.close()
    assert not agents.unhandled


@contextmanager
def trap_port() -> Iterator[socket.socket]:
    """Yield a socket that receives traps; reading from it raises TimeoutError after 10 s."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((HOST, 0))
        receiver.settimeout(10)
        yield receiver
