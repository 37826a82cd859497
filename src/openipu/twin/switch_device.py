# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch of a rack twin: switched on and off, and broken, as a person in front of the rack would."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from openipu.twin.eos.server import Served, serve
from openipu.twin.eos.startup import startup_config
from openipu.twin.eos.surroundings import Surroundings
from openipu.twin.eos.switch import Credentials, Faults, Switch
from openipu.twin.logins import PASSWORD, USER
from openipu.twin.wiring import Wrong

# What a fault of the twin's grammar does to it, and what is told of it.
FAULTS: Mapping[str, tuple[dict[str, Any], str]] = {
    "refuse": ({"refusing": True}, "takes no connections"),
    "login": ({"wrong_credentials": True}, "knows none of its users"),
    "sessions": ({"full_sessions": True}, "has no room for another configuration session"),
}
DROPS = ("before", "after")


class SwitchDevice:
    """A switch and the place where it answers.

    Args:
        name: its name.
        model: its product.
        host: its management address.
        prefix: length of the prefix of that.
        port: TCP port of its eAPI.
        surroundings: what is plugged in.
        folder: what it keeps while it has no power.

    Raises:
        ValueError: for a product that the twin does not know.
    """

    def __init__(
        self, name: str, model: str, host: str, prefix: int, port: int, surroundings: Surroundings, folder: Path
    ) -> None:
        self.name = name
        self._model = model
        self.host = host
        self._port = port
        self._startup = startup_config(name, f"{host}/{prefix}")
        self._surroundings = surroundings
        self._folder = folder
        self._served: Served | None = None
        self._tls: ssl.SSLContext | None = None
        self.switch = self._boot()

    def _boot(self) -> Switch:
        return Switch(
            self.name,
            self._model,
            startup_config=self._startup,
            surroundings=self._surroundings,
            credentials=Credentials({USER: PASSWORD}),
            state=self._folder,
        )

    def secure(self, tls: ssl.SSLContext) -> None:
        """Show this certificate from the next start on."""
        self._tls = tls

    @property
    def running(self) -> bool:
        """Whether it is on."""
        return self._served is not None

    async def start(self) -> None:
        """Switch it on: it begins with its startup configuration. Raises OSError with a sentence."""
        if self._served is None:
            self.switch = self._boot()
            try:
                self._served = await serve(self.switch, self.host, self._port, self._tls)
            except OSError as error:
                sentence = f"Switch {self.name!r} cannot listen on {self.host}:{self._port}: {error.strerror}."
                raise OSError(sentence) from None

    async def stop(self) -> None:
        """Switch it off: what was not saved is lost."""
        if self._served is not None:
            await self._served.close()
            self._served = None

    def slow(self, seconds: float) -> None:
        """Let every answer take so much longer."""
        self._spoil(slow=seconds)

    def fault(self, verb: str) -> None:
        """Make one of `FAULTS`."""
        self._spoil(**FAULTS[verb][0])

    def drop(self, when: str) -> None:
        """Let the connection break in the next commit, `before` or `after` it takes effect."""
        self._spoil(drop_commit=when)

    def heal(self) -> None:
        """Have no fault any more. Its configuration is no fault."""
        self.switch.set_faults(Faults())

    def wrong(self) -> Iterator[Wrong]:
        """What is wrong with it."""
        if not self.running:
            yield Wrong("stop", self.name, f"{self.name}: has no power.")
            return
        faults = self.switch.faults
        if faults.slow:
            sentence = f"{self.name}: answers {faults.slow:g} seconds late."
            yield Wrong("slow", self.name, sentence, f"{faults.slow:g}", "0")
        for verb, (settings, told) in FAULTS.items():
            if all(getattr(faults, name) for name in settings):
                yield Wrong(verb, self.name, f"{self.name}: {told}.")
        if faults.drop_commit:
            sentence = f"{self.name}: breaks the connection in the next commit, {faults.drop_commit} it takes effect."
            yield Wrong("drop", self.name, sentence, faults.drop_commit)

    def _spoil(self, **settings: Any) -> None:
        self.switch.set_faults(replace(self.switch.faults, **settings))
