# SPDX-License-Identifier: GPL-3.0-or-later
"""PDUs of the twin that answer in this process, for tests that come from outside, and who receives their traps."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from openipu.twin.pdu import Community, Credentials, Faults, Pdu, Server, User, serve

HOST = "127.0.0.1"
WRITER, READER = "operator", "watcher"
AUTH_KEY, PRIV_KEY = "4uthentic-of-nobody", "3ncrypted-of-nobody"
READS, WRITES = "r34d-of-nobody", "wr1te-of-nobody"
USERS = (User(WRITER, AUTH_KEY, PRIV_KEY, write=True), User(READER, AUTH_KEY, PRIV_KEY, auth="sha256", priv="aes256"))
V3_ONLY = Credentials(USERS)
WITH_V2C = Credentials(USERS, (Community(READS), Community(WRITES, write=True)))
Result = TypeVar("Result")


class ServedPdu:
    """One PDU that answers; whatever touches it is done in its event loop. ``watts`` is what its outlets would draw."""

    def __init__(self, loop: asyncio.AbstractEventLoop, watts: dict[int, float], trap_port: int, pdu: Any) -> None:
        self._loop = loop
        self.watts = watts

        async def start() -> Server:
            return await serve(pdu(), HOST, 0, trap_port=trap_port)

        self.server = self._run(start())
        self.pdu = self.server.pdu
        self.port = self.server.port

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def do(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call this in the event loop of the PDU."""

        async def call() -> Result:
            return function(*arguments)

        return self._run(call())

    def draws(self, watts: Mapping[int, float]) -> None:
        """From now on its outlets would draw this, were they on."""

        def change() -> None:
            self.watts.clear()
            self.watts.update(watts)
            self.pdu.sample()

        self.do(change)

    def fault(self, **faults: Any) -> None:
        """Let it be faulty in this way, and in no other."""
        self.do(setattr, self.pdu, "faults", Faults(**faults))

    @property
    def requests(self) -> Counter[str]:
        """How many requests it has let in so far, of each kind."""
        return self.do(lambda: Counter(self.server.requests))

    def options(self, **more: Any) -> dict[str, Any]:
        """The connection options of our modules, for the user who may write."""
        user = {"username": WRITER, "auth_key": AUTH_KEY, "priv_key": PRIV_KEY}
        return {"host": HOST, "port": self.port, **user, "timeout": 5, "retries": 1, **more}

    def close(self) -> None:
        """Answer nothing more."""
        self._run(self.server.close())


class Agents:
    """An event loop in a thread, and the PDUs that answer in it. ``complaints`` is what nobody in the loop caught."""

    def __init__(self) -> None:
        self.complaints: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _loop, context: self.complaints.append(context))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
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
        """A new PDU; its traps go to ``trap_port``, which is where nobody listens unless given."""
        drawn = dict(watts or {})
        served = ServedPdu(
            self._loop, drawn, trap_port, lambda: Pdu(name, model, lambda: dict(drawn), credentials, folder)
        )
        self._served.append(served)
        return served

    def close(self) -> None:
        for served in self._served:
            served.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@contextmanager
def agents_of_pdus() -> Iterator[Agents]:
    """PDUs, as long as they are needed, about which nobody's event loop may complain."""
    agents = Agents()
    try:
        yield agents
    finally:
        agents.close()
    assert not agents.complaints


@contextmanager
def trap_port() -> Iterator[socket.socket]:
    """A port that receives traps; reading from it ends with TimeoutError after a while."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind((HOST, 0))
        receiver.settimeout(10)
        yield receiver
