# SPDX-License-Identifier: GPL-3.0-or-later
"""One switch: what it is, what it is configured as, and what is plugged into it."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openipu.twin.eos.config import Config
from openipu.twin.eos.edit import parsed
from openipu.twin.eos.forwarding import Forwarding
from openipu.twin.eos.ports import Ports
from openipu.twin.eos.reach import address
from openipu.twin.eos.sessions import Sessions
from openipu.twin.eos.surroundings import Nothing, Surroundings


@dataclass(frozen=True)
class Credentials:
    """Who may log in.

    Args:
        users: password by name; these are the twin's, whatever `username` lines the configuration has.
        operators: those of them who have the role network-operator, which must not configure.
        enable: password of `enable`, when one is asked for.
    """

    users: Mapping[str, str]
    operators: frozenset[str] = frozenset()
    enable: str = ""


@dataclass
class Faults:
    """What is wrong with a switch.

    Args:
        slow: seconds by which each answer is late.
        refusing: it takes no connections.
        drop_commit: `before` or `after`: the connection breaks in the next commit, before or after it took
            effect; empty for none. This fault ends with that commit.
        wrong_credentials: it knows none of its users.
        full_sessions: others have as many sessions open as there may be.
    """

    slow: float = 0.0
    refusing: bool = False
    drop_commit: str = ""
    wrong_credentials: bool = False
    full_sessions: bool = False


@dataclass(frozen=True)
class Hardware:
    """What a switch says of itself."""

    mac: str
    serial: str
    revision: str = "12.03"
    memory: int = 3982456
    free: int = 2076700
    image: str = field(default="Strata-4GB")


class Switch:
    """A switch.

    Args:
        name: host name of a switch whose configuration has none; it also makes MAC address and serial number.
        model: `DCS-7060CX-32S-F`, `DCS-7010T-48-F`, or any other when `ports` are given.
        version: EOS version.
        startup_config: text of the configuration it starts with.
        surroundings: what is plugged in.
        credentials: who may log in.
        ports: names of its ports, for a model that is not known here.
        state: folder that keeps `startup-config` and `running-config`; the startup configuration there counts
            when there is one.
        clock: time in seconds since the epoch.
        management_address: the address that everybody knows it by; that of its management interface in
            `startup_config` by itself.

    Raises:
        ValueError: for a model without known ports, or a line that is no configuration.
    """

    def __init__(
        self,
        name: str,
        model: str,
        version: str = "4.28.3M",
        startup_config: str = "",
        surroundings: Surroundings | None = None,
        credentials: Credentials | None = None,
        *,
        ports: Sequence[str] = (),
        state: Path | None = None,
        clock: Callable[[], float] = time.time,
        management_address: str | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.version = version
        self.surroundings = surroundings or Nothing()
        self.credentials = credentials or Credentials({})
        self.ports = Ports(ports) if ports else Ports.of_model(model)
        digest = hashlib.sha256(name.encode()).hexdigest()
        self.hardware = Hardware("001c73" + digest[:6], "JPE" + str(int(digest[6:14], 16) % 10**8).zfill(8))
        self.build = str(uuid.UUID(hex=digest[:32]))
        self.engine = f"f5717f{self.hardware.mac}00"
        self.clock = clock
        self.booted = clock()
        self.faults = Faults()
        self._state = state
        self._kept: dict[str, str] = {}
        self._listeners: list[Callable[[], None]] = []
        given = parsed(startup_config, self.ports, self.engine)
        self.management_address = address(given) if management_address is None else management_address
        saved = state / "startup-config" if state else None
        kept = saved.read_text("utf-8") if saved and saved.exists() else None
        self.startup = given if kept is None else parsed(kept, self.ports, self.engine)
        self.startup_saved = self.booted
        self.startup_user = "root"
        self.sessions = Sessions(self.startup.copy(), clock)
        self.keep()

    @property
    def running(self) -> Config:
        """The running configuration."""
        return self.sessions.running

    @property
    def hostname(self) -> str:
        """Its host name."""
        return self.running.root.value("hostname") or self.name

    @property
    def forwarding(self) -> Forwarding:
        """What it does now."""
        return Forwarding(self.running, self.surroundings)

    def clean(self) -> Config:
        """The configuration as delivered."""
        return Config(self.ports)

    def save(self, user: str) -> None:
        """`write`: start with what is running now."""
        self.startup = self.running.copy()
        self.startup_saved, self.startup_user = self.clock(), user
        self.keep()

    def keep(self) -> None:
        """Write the configurations into the state folder, when they are others than before."""
        if self._state is None:
            return
        self._state.mkdir(parents=True, exist_ok=True)
        for file, config in (("startup-config", self.startup), ("running-config", self.running)):
            text = "\n".join([*config.lines(), "!", "end", ""])
            if self._kept.get(file) != text:
                new = self._state / f".{file}"
                new.write_text(text, "utf-8")
                new.replace(self._state / file)
                self._kept[file] = text

    def on_faults(self, listener: Callable[[], None]) -> None:
        """Call this after every change of what is wrong."""
        self._listeners.append(listener)

    def no_longer(self, listener: Callable[[], None]) -> None:
        """Call this no more."""
        self._listeners.remove(listener)

    def set_faults(self, faults: Faults) -> None:
        """Break it so, and in no other way."""
        self.faults = faults
        others = [session for session in self.sessions.pending() if session.user == "other"]
        if faults.full_sessions:
            for number in range(self.sessions.max_pending - len(self.sessions.pending())):
                self.sessions.enter(f"other-{number + len(others) + 1}", "other")
        else:
            for session in others:
                self.sessions.abort(session)
        for listener in self._listeners:
            listener()
