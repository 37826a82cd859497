# SPDX-License-Identifier: GPL-3.0-or-later
"""Twins of EOS switches, served in this process over verified TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pyeapi

from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.devices.eos.config.startup import startup_config
from openipu.twin.devices.eos.server import SwitchServer, serve
from openipu.twin.devices.eos.switch import Credentials, Switch, SwitchFaults
from openipu.vipu.tls import issue, load
from tests.event_loop import LoopThread

USER, PASSWORD, ENABLE = "admin", "p4ss-w0rd.for-tests", "3n4ble-for-tests"
DATA, MANAGEMENT = "DCS-7060CX-32S-F", "DCS-7010T-48-F"
ADDRESS = "10.1.3.111/24"
Result = TypeVar("Result")


class Cables:
    """Neighbours of the ports of a switch; tests may change them."""

    def __init__(self, ports: Mapping[str, Neighbour] | None = None) -> None:
        self.ports = dict(ports or {})

    def neighbour(self, port: str) -> Neighbour | None:
        return self.ports.get(port)


class ServedSwitch:
    """One served switch; all access to it runs in its event loop."""

    def __init__(self, loop: LoopThread, switch: Switch, certs: Path | None) -> None:
        self._loop = loop
        self.switch = switch
        self.certs = certs
        context = None
        if certs is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certs / "server" / load.CA))
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_cert_chain(certs / "server/server.crt", certs / "server/server.key")
        self.served: SwitchServer = loop.run(serve(switch, "127.0.0.1", 0, context))
        self.port = self.served.port

    def do(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in the event loop of the switch."""
        return self._loop.call(function, *arguments)

    def fault(self, **faults: Any) -> None:
        self.do(self.switch.set_faults, SwitchFaults(**faults))

    def config(self) -> list[str]:
        """Return the lines of the running configuration."""
        return self.do(lambda: self.switch.running.lines())

    def saved(self) -> list[str]:
        """Return the lines of the startup configuration."""
        return self.do(lambda: self.switch.startup.lines())

    def sessions(self) -> dict[str, str]:
        """Return the states of the sessions by name."""
        return self.do(lambda: {one.name: one.state for one in self.switch.sessions.all()})

    @property
    def requests(self) -> int:
        """Number of requests so far."""
        return self.served.requests

    @property
    def connections(self) -> int:
        """Number of connections so far."""
        return self.served.connections

    def node(self, user: str = USER, password: str = PASSWORD, timeout: float = 30, **more: Any) -> Any:
        """Return a node of pyeapi that verifies the certificate."""
        if self.certs is not None:
            more.setdefault("context", ssl.create_default_context(cafile=str(self.certs / "ca" / load.CA)))
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
        """Return the connection options of the modules."""
        given = {"host": "127.0.0.1", "port": self.port, "username": USER, "password": PASSWORD, "timeout": 20}
        secure = {"ca_path": str(self.certs / "ca" / load.CA)} if self.certs else {"use_ssl": False}
        return {**given, **secure, **more}

    def close(self) -> None:
        self._loop.run(self.served.close())


class Rack:
    """Event loop in a thread, and the switches that it serves."""

    def __init__(self, folder: Path) -> None:
        self.certs = folder / "eos-certs"
        issue.create(self.certs, ["127.0.0.1"])
        self._loop = LoopThread()
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
        """Serve a new switch."""
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
        self._loop.stop()


@contextmanager
def rack_of_switches(folder: Path) -> Iterator[Rack]:
    """Serve switches until the end of the block."""
    rack = Rack(folder)
    try:
        yield rack
    finally:
        rack.close()
