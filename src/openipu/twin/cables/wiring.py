# SPDX-License-Identifier: GPL-3.0-or-later
"""IPU-Link, GW-Link and Sync-Link cables of a rack twin, and the signals that pass through them.

All machines of a rack share one ``Wiring``. It holds the actual cabling only. A machine reads the cables in its
ports, and sends pulses and trains links with the port at the other end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from openipu.shared.pod.topology import CableKind, Layout
from openipu.shared.vipu.cluster_test.cable_names import PREFIXES, cable_name, port_name

# The chassis ports of an IPU-M2000.
CHASSIS_PORTS = {
    CableKind.IPU_LINK: range(1, 9),
    CableKind.GW_LINK: range(1, 3),
    CableKind.SYNC_LINK: range(8),
}


class WiringError(ValueError):
    """Raised for an impossible change of cables, with a one-line message."""

    error_code = "OPU802"


class Place(NamedTuple):
    """A chassis port of a machine, written ``ag03:5``, ``ag03:gw1`` or ``ag03:sync6``."""

    agent: str
    kind: CableKind
    port: int

    def __str__(self) -> str:
        return port_name(self.agent, self.kind, self.port)

    @classmethod
    def parse(cls, text: str) -> Place:
        """Return the port of a text. Raises WiringError."""
        agent, colon, name = text.rpartition(":")
        for kind, prefix in sorted(PREFIXES.items(), key=lambda item: -len(item[1])):
            number = name.removeprefix(prefix)
            if colon and agent and name.startswith(prefix) and number.isascii() and number.isdigit():
                ports = CHASSIS_PORTS[CableKind(kind)]
                if int(number) not in ports:
                    raise WiringError(
                        f"Cannot find port {text!r}: the {kind} ports of a machine are {ports[0]} to {ports[-1]}. "
                        "Use one of these."
                    )
                return cls(agent, CableKind(kind), int(number))
        raise WiringError(
            f"Cannot read port {text!r}: its format is unknown. "
            "Write AGENT:5 (IPU-Link), AGENT:gw1 (GW-Link) or AGENT:sync6 (Sync-Link)."
        )


@dataclass(frozen=True)
class Defect:
    """One deviation of a rack from its delivered state."""

    fault: str  # the verb of ``openipu.twin.rack.faults`` that causes it
    where: str  # ag03:7, ag03:internal4, ag03:Virm, ag03:eth1, or ag03
    message: str
    found: str = ""  # actual value: the port of the cable end, the reported version, …
    expected: str = ""
    cable: tuple[str, ...] = ()  # the two delivered ports of the cable

    def __str__(self) -> str:
        return self.message


@dataclass
class Cable:
    """One cable: its serial id, the ports of its two ends (None: loose), and its quality."""

    kind: CableKind
    serial: str
    ends: list[Place | None]
    home: tuple[Place, Place]  # delivered ports
    dead: bool = False
    corrected_errors: int = 0  # in each run of traffic

    def other_end(self, end: Place) -> Place | None:
        """Return the port at the other end."""
        a, b = self.ends
        return b if a == end else a


class Peer(Protocol):
    """The machine at the other end of a cable."""

    @property
    def alive(self) -> bool:
        """True while it has power and its hardware responds."""

    def receive_pulses(self, kind: CableKind, port: int, count: int) -> None:
        """Count sync pulses that arrived at a port."""


class Wiring:
    """All cables between the machines of a rack, and these machines."""

    def __init__(self) -> None:
        """Start without machines and cables."""
        self.machines: dict[str, Peer] = {}
        self.cables: list[Cable] = []
        self._at: dict[Place, Cable] = {}

    def connect(self, layout: Layout, agents: list[str]) -> None:
        """Connect the machines of a cluster by its layout."""
        for planned in layout.cables():
            a, b = (Place(agents[end.position], planned.kind, end.port) for end in (planned.a, planned.b))
            name = f"{planned.kind} {a.agent}:{a.port} {b.agent}:{b.port}"
            serial = f"CBL{hashlib.sha256(name.encode()).hexdigest()[:10].upper()}"
            cable = Cable(planned.kind, serial, [a, b], (a, b))
            self.cables.append(cable)
            self._at[a] = self._at[b] = cable

    def merge(self, other: Wiring) -> None:
        """Add the cables and machines of another wiring."""
        self.machines |= other.machines
        self.cables += other.cables
        self._at |= other._at

    def at(self, place: Place) -> Cable | None:
        """Return the cable in a port, or None."""
        return self._at.get(place)

    def place(self, text: str) -> Place:
        """Return the port of a text, on a machine of this rack. Raises WiringError."""
        place = Place.parse(text)
        if place.agent not in self.machines:
            raise WiringError(f"Cannot find machine {place.agent!r}: it is not in this rack. Check the name.")
        return place

    # Changes by hand

    def unplug(self, end: Place) -> Cable:
        """Pull the end of a cable out of a port. Raises WiringError for an empty port."""
        cable = self._cable_in(end)
        del self._at[end]
        cable.ends[cable.ends.index(end)] = None
        return cable

    def plug(self, end: Place) -> Cable:
        """Plug the loose cable end of a port back in. Raises WiringError."""
        self._check_free(end)
        for cable in self.cables:
            for index, home in enumerate(cable.home):
                if home == end and cable.ends[index] is None:
                    self._plug_in(cable, index, end)
                    return cable
        raise WiringError(f"Cannot plug a cable into '{end}': the port has no loose cable. Unplug its cable first.")

    def move(self, end: Place, to: Place) -> Cable:
        """Move the end of a cable to a free port that fits its plug. Raises WiringError."""
        cable = self._cable_in(end)
        self._check_fits(cable, to)
        self._check_free(to)
        index = cable.ends.index(end)
        del self._at[end]
        self._plug_in(cable, index, to)
        return cable

    def swap(self, end: Place, other: Place) -> None:
        """Exchange the cables in two ports. Raises WiringError."""
        first, second = self._cable_in(end), self._cable_in(other)
        self._check_fits(first, other)
        self._check_fits(second, end)
        if end == other:
            raise WiringError(f"Cannot swap '{end}' with itself: the ports are equal. Name two different ports.")
        indices = first.ends.index(end), second.ends.index(other)
        self._plug_in(first, indices[0], other)
        self._plug_in(second, indices[1], end)

    def degrade(self, end: Place, *, dead: bool | None = None, corrected_errors: int | None = None) -> Cable:
        """Set the quality of the cable in a port; None leaves a value unchanged. Raises WiringError."""
        cable = self._cable_in(end)
        if corrected_errors is not None and corrected_errors < 0:
            raise WiringError(f"Cannot set corrected errors of '{end}': {corrected_errors} is negative. Set 0 or more.")
        cable.dead = cable.dead if dead is None else dead
        cable.corrected_errors = cable.corrected_errors if corrected_errors is None else corrected_errors
        return cable

    def repair(self, agents: set[str]) -> None:
        """Restore every cable that belongs to one of these machines, or is plugged into one: ports and quality."""
        affected = [
            cable
            for cable in self.cables
            if any(place and place.agent in agents for place in (*cable.ends, *cable.home)) and not _healthy(cable)
        ]
        # A cable that blocks a correct port is misplaced too.
        for cable in affected:
            blocking = (self._at.get(home) for home in cable.home)
            affected += [other for other in blocking if other is not None and other not in affected]
        for cable in affected:
            for end in cable.ends:
                if end is not None:
                    del self._at[end]
            cable.ends = [None, None]
        for cable in affected:
            for index, home in enumerate(cable.home):
                self._plug_in(cable, index, home)
            cable.dead, cable.corrected_errors = False, 0

    def defects(self) -> Iterator[Defect]:
        """Yield the deviations from the delivered state: misplaced cable ends and bad cables."""
        for cable in self.cables:
            if _healthy(cable):
                continue
            name = f"{cable.kind} cable {cable_name(*cable.home)}"
            homes = tuple(map(str, cable.home))
            for end, home in zip(cable.ends, homes, strict=True):
                if end is None:
                    yield Defect("unplug", home, f"{name}: not plugged in at {home}.", "", home, homes)
                elif str(end) != home:
                    yield Defect("move", home, f"{name}: in {end} instead of {home}.", str(end), home, homes)
            if cable.dead:
                yield Defect("break", homes[0], f"{name}: broken.", cable=homes)
            if cable.corrected_errors:
                errors = str(cable.corrected_errors)
                message = f"{name}: {errors} corrected errors in every run of traffic."
                yield Defect("errors", homes[0], message, errors, "0", homes)

    # Signals

    def serial(self, place: Place) -> str:
        """Return the serial id in the plug of a port, also of a broken cable; empty without a cable."""
        cable = self._at.get(place)
        return cable.serial if cable else ""

    def peer(self, place: Place) -> Place | None:
        """Return the port that a signal from this one reaches; None for a broken cable or an unresponsive machine."""
        cable = self._at.get(place)
        if cable is None or cable.dead:
            return None
        peer = cable.other_end(place)
        if peer is None or not self.machines[peer.agent].alive:
            return None
        return peer

    def send(self, place: Place, count: int) -> None:
        """Send sync pulses out of a port."""
        peer = self.peer(place)
        if peer:
            self.machines[peer.agent].receive_pulses(peer.kind, peer.port, count)

    def trains(self, place: Place) -> bool:
        """Return whether a link comes up here: the port at the other end must be of the same kind."""
        peer = self.peer(place)
        return peer is not None and peer.kind is place.kind

    def errors(self, place: Place) -> int:
        """Return the errors that are corrected at this port in one run of traffic."""
        cable = self._at.get(place)
        return cable.corrected_errors if cable else 0

    def _plug_in(self, cable: Cable, index: int, place: Place) -> None:
        cable.ends[index] = place
        self._at[place] = cable

    def _cable_in(self, place: Place) -> Cable:
        cable = self._at.get(place)
        if cable is None:
            raise WiringError(f"Cannot find a cable in '{place}': the port is empty. Name a port with a cable.")
        return cable

    def _check_free(self, place: Place) -> None:
        if place in self._at:
            raise WiringError(f"Cannot use port '{place}': it is not free. Unplug its cable first, or swap the two.")

    @staticmethod
    def _check_fits(cable: Cable, place: Place) -> None:
        if (cable.kind is CableKind.SYNC_LINK) != (place.kind is CableKind.SYNC_LINK):
            raise WiringError(
                f"Cannot plug a cable into '{place}': the cable is for {cable.kind}s. Choose another kind of port."
            )


def _healthy(cable: Cable) -> bool:
    return tuple(cable.ends) == cable.home and not cable.dead and not cable.corrected_errors
