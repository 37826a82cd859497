# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU of a rack twin: fed or not, and broken, as a person in front of the rack would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from openipu.twin.logins import AUTH_KEY, PRIV_KEY, USER
from openipu.twin.pdu import MODELS, Credentials, Faults, Pdu, Server, User, serve
from openipu.twin.wiring import Wrong

READER = "reader"
_USERS = Credentials([User(USER, AUTH_KEY, PRIV_KEY, write=True), User(READER, AUTH_KEY, PRIV_KEY)])
# What a fault of the twin's grammar does to it, and what is told of it.
FAULTS: Mapping[str, tuple[dict[str, Any], str]] = {
    "refuse": ({"refusing": True}, "answers nobody"),
    "login": ({"wrong_credentials": True}, "knows none of its users"),
}


class Plugs(Protocol):
    """What is plugged into the PDUs of a rack."""

    def watts(self, pdu: str, outlet: int) -> float:
        """What is drawn from an outlet, were it on."""

    def switched(self, pdu: str, outlet: int, on: bool) -> None:
        """An outlet has power now, or has none any more."""


class PduDevice:
    """A PDU and the place where it answers.

    Args:
        name: its name.
        model: its product.
        host: its management address.
        port: UDP port of its SNMP agent.
        folder: what it keeps while it has no power.
        plugs: what is plugged in.

    Raises:
        ValueError: for a product that the twin does not know.
    """

    def __init__(self, name: str, model: str, host: str, port: int, folder: Path, plugs: Plugs) -> None:
        if model not in MODELS:
            raise ValueError(f"PDU {name!r}: the twin knows no {model!r}: choose from {', '.join(MODELS)}")
        self.name = name
        self.outlets = len(MODELS[model].outlets)
        self._model = model
        self._host = host
        self._port = port
        self._folder = folder
        self._plugs = plugs
        self._pdu: Pdu | None = None
        self._server: Server | None = None

    @property
    def running(self) -> bool:
        """Whether it is fed."""
        return self._server is not None

    async def start(self) -> None:
        """Feed it: it is set as it was, and so are its outlets. Raises OSError or ValueError with a sentence."""
        if self._server is not None:
            return
        pdu = Pdu(
            self.name,
            self._model,
            loads=lambda: {outlet: self._plugs.watts(self.name, outlet) for outlet in range(1, self.outlets + 1)},
            credentials=_USERS,
            folder=self._folder,
            on_outlet=lambda outlet, on: self._plugs.switched(self.name, outlet, on),
        )
        try:
            self._server = await serve(pdu, self._host, self._port)
        except OSError as error:
            sentence = f"PDU {self.name!r} cannot listen on {self._host}:{self._port}: {error.strerror or error}."
            raise OSError(sentence) from None
        self._pdu = pdu
        for outlet in range(1, self.outlets + 1):
            self._plugs.switched(self.name, outlet, pdu.is_on(outlet))

    async def stop(self) -> None:
        """Cut it off, and with it what it feeds."""
        if self._server is not None:
            await self._server.close()
            self._server = self._pdu = None
            for outlet in range(1, self.outlets + 1):
                self._plugs.switched(self.name, outlet, False)

    def slow(self, seconds: float) -> None:
        """Let every answer take so much longer."""
        self._spoil(slow=seconds)

    def fault(self, verb: str) -> None:
        """Make one of `FAULTS`."""
        self._spoil(**FAULTS[verb][0])

    def heal(self) -> None:
        """Have no fault any more. What it is set to is no fault."""
        if self._pdu is not None:
            self._pdu.faults = Faults()

    def wrong(self) -> Iterator[Wrong]:
        """What is wrong with it."""
        if self._pdu is None:
            yield Wrong("stop", self.name, f"{self.name}: has no power.")
            return
        faults = self._pdu.faults
        if faults.slow:
            sentence = f"{self.name}: answers {faults.slow:g} seconds late."
            yield Wrong("slow", self.name, sentence, f"{faults.slow:g}", "0")
        for verb, (settings, told) in FAULTS.items():
            if all(getattr(faults, name) for name in settings):
                yield Wrong(verb, self.name, f"{self.name}: {told}.")

    def _spoil(self, **settings: Any) -> None:
        if self._pdu is not None:
            self._pdu.faults = replace(self._pdu.faults, **settings)
