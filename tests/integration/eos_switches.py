# SPDX-License-Identifier: GPL-3.0-or-later
"""EOS twins that are served in this process, over verified TLS, for tests that come from outside."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyeapi

from openipu.twin.eos.server import Served, serve
from openipu.twin.eos.startup import startup_config
from openipu.twin.eos.surroundings import Neighbour
from openipu.twin.eos.switch import Credentials, Faults, Switch
from openipu.vipu import tls

USER, PASSWORD, ENABLE = "admin", "p4ss-w0rd.of-nobody", "3n4ble-of-nobody"
DATA, MANAGEMENT = "DCS-7060CX-32S-F", "DCS-7010T-48-F"
ADDRESS = "10.1.3.111/24"
Result = TypeVar("Result")


class Cables:
    """What is plugged into the ports of a switch; tests change it."""

    def __init__(self, ports: Mapping[str, Neighbour] | None = None) -> None:
        self.ports = dict(ports or {})

    def neighbour(self, port: str) -> Neighbour | None:
        return self.ports.get(port)


class ServedSwitch:
    """One switch that is served; whatever touches it is done in its event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, switch: Switch, certs: Path | None) -> None:
        self._loop = loop
        self.switch = switch
        self.certs = certs
        context = None
        if certs is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certs / "server" / tls.CA))
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_cert_chain(certs / "server/server.crt", certs / "server/server.key")
        self.served: Served = self.run(serve(switch, "127.0.0.1", 0, context))
        self.port = self.served.port

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def do(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call this in the switch's event loop."""

        async def call() -> Result:
            return function(*arguments)

        return self.run(call())

    def fault(self, **faults: Any) -> None:
        self.do(self.switch.set_faults, Faults(**faults))

    def config(self) -> list[str]:
        """The running configuration, as it is inside."""
        return self.do(lambda: self.switch.running.lines())

    def saved(self) -> list[str]:
        """The startup configuration, as it is inside."""
        return self.do(lambda: self.switch.startup.lines())

    def sessions(self) -> dict[str, str]:
        """The sessions and their states."""
        return self.do(lambda: {one.name: one.state for one in self.switch.sessions.rows()})

    @property
    def requests(self) -> int:
        """How many requests it has answered."""
        return self.served.requests

    @property
    def connections(self) -> int:
        """Over how many connections they came."""
        return self.served.connections

    def node(self, user: str = USER, password: str = PASSWORD, timeout: float = 30, **more: Any) -> Any:
        """pyeapi's node for it, with its certificate verified."""
        if self.certs is not None:
            more.setdefault("context", ssl.create_default_context(cafile=str(self.certs / "ca" / tls.CA)))
        return pyeapi.connect(
            transport="https" if self.certs else "http",
            host="127.0.0.1",
            port=self.port,
            username=user,
            password=password,
            timeout=timeout,
            return_node=True,
            **more,
        )

    def options(self, **more: Any) -> dict[str, Any]:
        """The connection options of our modules."""
        given = {"host": "127.0.0.1", "port": self.port, "username": USER, "password": PASSWORD, "timeout": 20}
        secure = {"ca_path": str(self.certs / "ca" / tls.CA)} if self.certs else {"use_ssl": False}
        return {**given, **secure, **more}

    def close(self) -> None:
        self.run(self.served.close())


class Rack:
    """An event loop in a thread, and the switches that are served in it."""

    def __init__(self, folder: Path) -> None:
        self.certs = folder / "eos-certs"
        tls.create(self.certs, ["127.0.0.1"])
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._served: list[ServedSwitch] = []

    def switch(
        self,
        name: str = "tor1",
        model: str = DATA,
        startup: str | None = None,
        secure: bool = True,
        enable: str = "",
        operators: frozenset[str] = frozenset(),
        **more: Any,
    ) -> ServedSwitch:
        """A new switch."""
        users = {USER: PASSWORD, **dict.fromkeys(operators, PASSWORD)}
        made = Switch(
            name,
            model,
            startup_config=startup_config(name, ADDRESS, http=not secure) if startup is None else startup,
            credentials=Credentials(users, operators, enable),
            **more,
        )
        served = ServedSwitch(self._loop, made, self.certs if secure else None)
        self._served.append(served)
        return served

    def close(self) -> None:
        for served in self._served:
            served.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


@contextmanager
def rack_of_switches(folder: Path) -> Iterator[Rack]:
    """Switches, as long as they are needed."""
    rack = Rack(folder)
    try:
        yield rack
    finally:
        rack.close()
