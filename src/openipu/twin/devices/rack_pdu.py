# SPDX-License-Identifier: GPL-3.0-or-later
"""PDU of a rack twin: its power switch and its faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from openipu.process.failures import EndpointError
from openipu.twin.cables.wiring import Defect
from openipu.twin.devices.defects import device_defects
from openipu.twin.devices.logins import AUTH_KEY, PRIV_KEY, READER, USER
from openipu.twin.devices.pdu import Community, Credentials, Pdu, PduFaults, Server, User, find_model, serve

_USERS = (User(USER, AUTH_KEY, PRIV_KEY, write=True), User(READER, AUTH_KEY, PRIV_KEY))
# Fault verb -> settings of PduFaults, and the description of the defect.
FAULTS: Mapping[str, tuple[dict[str, Any], str]] = {
    "reject": ({"rejecting": True}, "ignores all requests"),
    "login": ({"wrong_credentials": True}, "rejects all of its users"),
}


class OutletLoads(Protocol):
    """Loads at the outlets of the PDUs of a rack."""

    def watts(self, pdu: str, outlet: int) -> float:
        """Return the W that an outlet delivers while it is on."""

    def outlet_switched(self, pdu: str, outlet: int, on: bool) -> None:
        """Apply a change of the power of an outlet."""


class PduDevice:
    """A PDU with its SNMP endpoint.

    Args:
        name: its name.
        model: its product.
        host: its management address.
        port: UDP port of its SNMP agent.
        folder: folder of its persistent state.
        loads: loads at its outlets.
        community: community of SNMPv1 and v2c, without write access; only SNMPv3 if empty.

    Raises:
        ValueError: for a product that the twin does not support.
    """

    kind = "PDU"

    def __init__(
        self, name: str, model: str, host: str, port: int, folder: Path, loads: OutletLoads, community: str = ""
    ) -> None:
        self.name = name
        self.outlets = find_model(model, name).balanced()
        self._model = model
        self._host = host
        self._port = port
        self._folder = folder
        self._loads = loads
        self._credentials = Credentials(_USERS, [Community(community)] if community else [])
        self._pdu: Pdu | None = None
        self._server: Server | None = None

    @property
    def running(self) -> bool:
        """True while the PDU has power."""
        return self._server is not None

    async def start(self) -> None:
        """Power it on, with its saved settings and outlet states. Raises OSError or ValueError."""
        if self._server is not None:
            return
        pdu = Pdu(
            self.name,
            self._model,
            loads=lambda: {outlet: self._loads.watts(self.name, outlet) for outlet in self.outlets},
            credentials=self._credentials,
            folder=self._folder,
            on_outlet=lambda outlet, on: self._loads.outlet_switched(self.name, outlet, on),
        )
        try:
            self._server = await serve(pdu, self._host, self._port)
        except OSError as error:
            message = f"PDU {self.name!r} cannot listen on {self._host}:{self._port}: {error.strerror or error}."
            raise EndpointError(message) from None
        self._pdu = pdu
        for outlet in self.outlets:
            self._loads.outlet_switched(self.name, outlet, pdu.outlets.is_on(outlet))

    async def stop(self) -> None:
        """Cut its power, and that of its outlets."""
        if self._server is not None:
            await self._server.close()
            self._server = self._pdu = None
            for outlet in self.outlets:
                self._loads.outlet_switched(self.name, outlet, False)

    def slow(self, seconds: float) -> None:
        """Delay every response by ``seconds``."""
        self._set_faults(slow=seconds)

    def inject(self, verb: str) -> None:
        """Inject one of `FAULTS`."""
        self._set_faults(**FAULTS[verb][0])

    def heal(self) -> None:
        """Remove all faults. Settings stay unchanged."""
        if self._pdu is not None:
            self._pdu.faults = PduFaults()

    def defects(self) -> Iterator[Defect]:
        """Yield its faults."""
        yield from device_defects(self.name, self._pdu.faults if self._pdu else None, FAULTS)

    def _set_faults(self, **settings: Any) -> None:
        if self._pdu is not None:
            self._pdu.faults = replace(self._pdu.faults, **settings)
