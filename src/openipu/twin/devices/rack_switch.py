# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch of a rack twin: its power switch and its faults."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from openipu.process.failures import EndpointError
from openipu.twin.cables.switch_cabling import SwitchCabling
from openipu.twin.cables.wiring import Defect
from openipu.twin.devices.defects import device_defects
from openipu.twin.devices.eos.config.startup import startup_config
from openipu.twin.devices.eos.managed import ManagedSwitch
from openipu.twin.devices.eos.server import SwitchServer, serve
from openipu.twin.devices.eos.switch import Credentials, Switch, SwitchFaults
from openipu.twin.devices.logins import AUTH_KEY, PASSWORD, PRIV_KEY, READER, USER
from openipu.twin.devices.snmp import users as snmp
from openipu.twin.devices.snmp.server import Server as SnmpServer
from openipu.twin.devices.snmp.server import bind

_USERS = (snmp.User(READER, AUTH_KEY, PRIV_KEY),)

# Fault verb -> settings of SwitchFaults, and the description of the defect.
FAULTS: Mapping[str, tuple[dict[str, Any], str]] = {
    "reject": ({"rejecting": True}, "rejects all connections"),
    "login": ({"wrong_credentials": True}, "rejects all of its users"),
    "sessions": ({"full_sessions": True}, "rejects new configuration sessions: all are in use"),
}


class SwitchDevice:
    """A switch with its eAPI and SNMP endpoints.

    Args:
        name: its name.
        model: its product.
        host: its management address.
        prefix: prefix length of its management network.
        port: TCP port of its eAPI.
        snmp_port: UDP port of its SNMP agent.
        cabling: cables in its ports.
        folder: folder of its persistent state.
        community: community of SNMPv1 and v2c in its initial configuration; only SNMPv3 if empty.

    Raises:
        ValueError: for a product that the twin does not support.
    """

    kind = "switch"

    def __init__(
        self,
        name: str,
        model: str,
        host: str,
        prefix: int,
        port: int,
        snmp_port: int,
        *,
        cabling: SwitchCabling,
        folder: Path,
        community: str = "",
    ) -> None:
        self.name = name
        self._model = model
        self.host = host
        self._port = port
        self._snmp_port = snmp_port
        snmp_logins = snmp.Credentials(_USERS, [snmp.Community(community)] if community else [])
        self._startup = startup_config(name, f"{host}/{prefix}", snmp=snmp_logins)
        self._cabling = cabling
        self._folder = folder
        self._served: SwitchServer | None = None
        self._agent: SnmpServer | None = None
        self._tls: ssl.SSLContext | None = None
        self.switch = self._boot()

    def _boot(self) -> Switch:
        return Switch(
            self.name,
            self._model,
            startup_config=self._startup,
            cabling=self._cabling,
            credentials=Credentials({USER: PASSWORD}),
            state=self._folder,
        )

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Use this TLS context from the next start on."""
        self._tls = tls

    @property
    def running(self) -> bool:
        """True while the switch is on."""
        return self._served is not None

    async def start(self) -> None:
        """Boot it with its startup configuration. Raises EndpointError with a one-line message."""
        if self._served is not None:
            return
        self.switch = self._boot()
        async with contextlib.AsyncExitStack() as opened:
            sock = opened.enter_context(self._bind_snmp())
            agent = SnmpServer(ManagedSwitch(self.switch), sock)
            opened.push_async_callback(agent.close)
            await agent.start()
            try:
                self._served = await serve(self.switch, self.host, self._port, self._tls)
            except OSError as error:
                raise self._occupied(self._port, error) from None
            opened.pop_all()
        self._agent = agent

    async def stop(self) -> None:
        """Cut its power: unsaved configuration is lost."""
        agent, served = self._agent, self._served
        self._agent = self._served = None
        try:
            if agent is not None:
                await agent.close()
        finally:
            if served is not None:
                await served.close()

    def slow(self, seconds: float) -> None:
        """Delay every response by ``seconds``."""
        self._set_faults(slow=seconds)

    def inject(self, verb: str) -> None:
        """Inject one of `FAULTS`."""
        self._set_faults(**FAULTS[verb][0])

    def drop(self, when: str) -> None:
        """Drop the connection in the next commit, `before` or `after` it takes effect."""
        self._set_faults(drop_commit=when)

    def heal(self) -> None:
        """Remove all faults. The configuration stays unchanged."""
        self.switch.set_faults(SwitchFaults())

    def defects(self) -> Iterator[Defect]:
        """Yield its faults."""
        faults = self.switch.faults
        yield from device_defects(self.name, faults if self.running else None, FAULTS)
        if self.running and faults.drop_commit:
            message = f"{self.name}: drops the connection in the next commit, {faults.drop_commit} it takes effect."
            yield Defect("drop", self.name, message, faults.drop_commit)

    def _set_faults(self, **settings: Any) -> None:
        self.switch.set_faults(replace(self.switch.faults, **settings))

    def _bind_snmp(self) -> socket.socket:
        try:
            return bind(self.host, self._snmp_port)
        except OSError as error:
            raise self._occupied(self._snmp_port, error) from None

    def _occupied(self, port: int, error: OSError) -> EndpointError:
        return EndpointError(f"Switch {self.name!r} cannot listen on {self.host}:{port}: {error.strerror or error}.")
