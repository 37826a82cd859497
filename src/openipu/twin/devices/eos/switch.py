# SPDX-License-Identifier: GPL-3.0-or-later
"""One switch: hardware, configurations, cabling, credentials and faults."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openipu.twin.cables.switch_cabling import NoCabling, SwitchCabling
from openipu.twin.devices.eos.config.edit import parse_config
from openipu.twin.devices.eos.config.sessions import Sessions
from openipu.twin.devices.eos.config.tree import Config
from openipu.twin.devices.eos.counters import Counters
from openipu.twin.devices.eos.flash import Flash
from openipu.twin.devices.eos.forwarding import Forwarding
from openipu.twin.devices.eos.ports import Ports
from openipu.twin.devices.eos.reach import management_address as address_of


@dataclass(frozen=True)
class Credentials:
    """Users of a switch.

    Args:
        users: password by user name. The twin ignores `username` lines of the configuration.
        operators: users with the role network-operator, which is denied configuration.
        enable: password of `enable`; empty for none.
    """

    users: Mapping[str, str]
    operators: frozenset[str] = frozenset()
    enable: str = ""


@dataclass
class SwitchFaults:
    """Faults of a switch.

    Args:
        slow: delay of each response in seconds.
        rejecting: reject all connections.
        drop_commit: `before` or `after`: break the connection in the next commit, before or after it takes
            effect; empty for none. This fault ends with that commit.
        wrong_credentials: reject all users.
        full_sessions: other users have opened the maximum number of sessions.
    """

    slow: float = 0.0
    rejecting: bool = False
    drop_commit: str = ""
    wrong_credentials: bool = False
    full_sessions: bool = False


@dataclass(frozen=True)
class Hardware:
    """Hardware data of a switch; memory is in kB."""

    mac: str
    serial: str
    revision: str = "12.03"
    memory: int = 3982456
    free: int = 2076700
    image: str = field(default="Strata-4GB")


class Switch:
    """One switch.

    Args:
        name: host name, unless the configuration sets one. MAC address and serial number derive from it.
        model: `DCS-7060CX-32S-F`, `DCS-7010T-48-F`, or any other if `ports` are given.
        version: EOS version.
        startup_config: text of the initial configuration.
        cabling: neighbours of the ports.
        credentials: users and passwords.
        ports: names of the ports of an unknown model.
        state: folder for `startup-config` and `running-config`. A startup configuration there takes precedence
            over `startup_config`.
        clock: time in seconds since the epoch.
        management_address: address that clients use. Default: the address of the management interface in
            `startup_config`.

    Raises:
        ValueError: for an unknown model without ports, or an invalid line of a configuration.
    """

    def __init__(
        self,
        name: str,
        model: str,
        version: str = "4.28.3M",
        startup_config: str = "",
        cabling: SwitchCabling | None = None,
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
        self.cabling = cabling or NoCabling()
        self.credentials = credentials or Credentials({})
        self.ports = Ports(ports) if ports else Ports.for_model(model)
        digest = hashlib.sha256(name.encode()).hexdigest()
        self.hardware = Hardware("001c73" + digest[:6], "JPE" + str(int(digest[6:14], 16) % 10**8).zfill(8))
        self.build = str(uuid.UUID(hex=digest[:32]))
        self.engine = f"f5717f{self.hardware.mac}00"
        self.clock = clock
        self.booted = clock()
        self.faults = SwitchFaults()
        self._state = state
        self._written: dict[str, str] = {}
        self._listeners: list[Callable[[], None]] = []
        given = parse_config(startup_config, self.ports, self.engine)
        self.management_address = address_of(given) if management_address is None else management_address
        saved = state / "startup-config" if state else None
        text = saved.read_text("utf-8") if saved and saved.exists() else None
        self.startup = given if text is None else parse_config(text, self.ports, self.engine)
        self.startup_saved = self.booted
        self.startup_user = "root"
        self.sessions = Sessions(self.startup.copy(), clock, self.booted)
        self.counters = Counters(lambda: self.forwarding, clock)
        self.sessions.on_change = self.counters.settle
        self.flash = Flash(state / "flash" if state else None)
        self.snmp_requests: Counter[str] = Counter()  # since the start, by kind
        self.write_state()

    @property
    def running(self) -> Config:
        """Running configuration."""
        return self.sessions.running

    @property
    def hostname(self) -> str:
        """Configured host name, or the name of the switch."""
        return self.running.root.value("hostname") or self.name

    @property
    def forwarding(self) -> Forwarding:
        """State of links, VLANs and MAC addresses under the running configuration."""
        return Forwarding(self.running, self.cabling)

    def factory_config(self) -> Config:
        """Return the factory configuration."""
        return Config(self.ports)

    def save(self, user: str) -> None:
        """Save the running configuration as startup configuration."""
        self.startup = self.running.copy()
        self.startup_saved, self.startup_user = self.clock(), user
        self.write_state()

    def write_state(self) -> None:
        """Write changed configurations into the state folder."""
        if self._state is None:
            return
        self._state.mkdir(parents=True, exist_ok=True)
        for file, config in (("startup-config", self.startup), ("running-config", self.running)):
            text = "\n".join([*config.lines(), "!", "end", ""])
            if self._written.get(file) != text:
                new = self._state / f".{file}"
                new.write_text(text, "utf-8")
                new.replace(self._state / file)
                self._written[file] = text

    def count_boot(self) -> int:
        """Count a start, for SNMPv3, and return the number of starts. Raises OSError.

        Without a state folder, it is a time: managers reject messages with a number that they have seen before.
        """
        if self._state is None:
            return int(self.clock())
        self._state.mkdir(parents=True, exist_ok=True)
        file = self._state / "snmp-boots"
        boots = int(file.read_text("utf-8")) + 1 if file.exists() else 1
        new = self._state / ".snmp-boots"
        new.write_text(f"{boots}\n", "utf-8")
        new.replace(file)
        return boots

    def add_fault_listener(self, listener: Callable[[], None]) -> None:
        """Call this after every change of the faults."""
        self._listeners.append(listener)

    def remove_fault_listener(self, listener: Callable[[], None]) -> None:
        """Stop calling this after changes of the faults."""
        self._listeners.remove(listener)

    def set_faults(self, faults: SwitchFaults) -> None:
        """Replace all faults."""
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
