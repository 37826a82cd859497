# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables of a rack twin: what is plugged in where, and what passes through it.

One ``Wiring`` is shared by all machines of a rack. It knows nothing of what should be: a machine asks
what is in its ports, and sends pulses and trains links with whatever is at the other end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind, Layout

# The chassis ports of an IPU-M2000.
CHASSIS_PORTS = {
    CableKind.IPU_LINK: range(1, 9),
    CableKind.GW_LINK: range(1, 3),
    CableKind.SYNC_LINK: range(8),
}
_PREFIX = {CableKind.IPU_LINK: "", CableKind.GW_LINK: "gw", CableKind.SYNC_LINK: "sync"}


class WiringError(ValueError):
    """What cannot be done with cables, as one sentence."""


class Place(NamedTuple):
    """A chassis port of a machine, written ``ag03:5``, ``ag03:gw1`` or ``ag03:sync6``."""

    agent: str
    kind: CableKind
    port: int

    def __str__(self) -> str:
        return f"{self.agent}:{_PREFIX[self.kind]}{self.port}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """The place that is written so. Raises WiringError."""
        agent, colon, name = text.rpartition(":")
        for kind, prefix in sorted(_PREFIX.items(), key=lambda item: -len(item[1])):
            number = name.removeprefix(prefix)
            if colon and agent and name.startswith(prefix) and number.isascii() and number.isdigit():
                if int(number) not in CHASSIS_PORTS[kind]:
                    ports = CHASSIS_PORTS[kind]
                    raise WiringError(f"{text!r}: the {kind} ports of a machine are {ports[0]} to {ports[-1]}.")
                return cls(agent, kind, int(number))
        raise WiringError(
            f"{text!r} is no port: write AGENT:5 (IPU-Link), AGENT:gw1 (GW-Link) or AGENT:sync6 (Sync-Link)."
        )


@dataclass(frozen=True)
class Wrong:
    """One thing of a rack that is not as it was delivered."""

    fault: str  # the verb of ``openipu.twin.faults`` that makes it so
    where: str  # ag03:7, ag03:internal4, ag03:Virm, ag03:eth1, or ag03
    sentence: str
    found: str = ""  # the port that the end is in, the version that is told, …
    expected: str = ""
    cable: tuple[str, ...] = ()  # the two ports that it was delivered in

    def __str__(self) -> str:
        return self.sentence


@dataclass
class Cable:
    """One cable: its serial id, where its two ends are (None: loose), and how good it is."""

    kind: CableKind
    serial: str
    ends: list[Place | None]
    home: tuple[Place, Place]  # where it was delivered
    dead: bool = False
    corrected_errors: int = 0  # in each run of traffic

    def other(self, end: Place) -> Place | None:
        """The port at the other end."""
        a, b = self.ends
        return b if a == end else a


class Peer(Protocol):
    """A machine as the one at the other end of a cable meets it."""

    @property
    def alive(self) -> bool:
        """Whether it has power and its hardware reacts."""

    def pulsed(self, kind: CableKind, port: int, count: int) -> None:
        """Sync pulses have arrived at a port."""


class Wiring:
    """All cables of the clusters of a rack, and the machines that they connect."""

    def __init__(self) -> None:
        """No machine, no cable."""
        self.machines: dict[str, Peer] = {}
        self.cables: list[Cable] = []
        self._at: dict[Place, Cable] = {}

    def lay(self, layout: Layout, agents: list[str]) -> None:
        """Cable the machines of a cluster as they should be."""
        for planned in layout.cables():
            a, b = (Place(agents[end.position], planned.kind, end.port) for end in (planned.a, planned.b))
            name = f"{planned.kind} {a.agent}:{a.port} {b.agent}:{b.port}"
            serial = f"CBL{hashlib.sha256(name.encode()).hexdigest()[:10].upper()}"
            cable = Cable(planned.kind, serial, [a, b], (a, b))
            self.cables.append(cable)
            self._at[a] = self._at[b] = cable

    def take(self, other: Wiring) -> None:
        """Take over the cables and machines of another wiring."""
        self.machines |= other.machines
        self.cables += other.cables
        self._at |= other._at

    def at(self, place: Place) -> Cable | None:
        """The cable in a port."""
        return self._at.get(place)

    def place(self, text: str) -> Place:
        """The port that is written so, of a machine that is there. Raises WiringError."""
        place = Place.parse(text)
        if place.agent not in self.machines:
            raise WiringError(f"There is no machine {place.agent!r} in this rack.")
        return place

    # What hands do

    def unplug(self, end: Place) -> Cable:
        """Pull the end of a cable out of a port. Raises WiringError when there is none."""
        cable = self._at.pop(end, None)
        if cable is None:
            raise WiringError(f"There is no cable in {end}.")
        cable.ends[cable.ends.index(end)] = None
        return cable

    def plug(self, end: Place) -> Cable:
        """Put the loose end that belongs into a port back there. Raises WiringError."""
        self._check_free(end)
        for cable in self.cables:
            for index, home in enumerate(cable.home):
                if home == end and cable.ends[index] is None:
                    self._put(cable, index, end)
                    return cable
        raise WiringError(f"No loose cable belongs into {end}.")

    def move(self, end: Place, to: Place) -> Cable:
        """Move the end of a cable to a free port that takes its plug. Raises WiringError."""
        cable = self._at.get(end)
        if cable is None:
            raise WiringError(f"There is no cable in {end}.")
        self._check_fits(cable, to)
        self._check_free(to)
        index = cable.ends.index(end)
        del self._at[end]
        self._put(cable, index, to)
        return cable

    def swap(self, end: Place, other: Place) -> None:
        """Exchange what is in two ports: two cables. Raises WiringError."""
        cables = [self._at.get(place) for place in (end, other)]
        for cable, place in zip(cables, (end, other), strict=True):
            if cable is None:
                raise WiringError(f"There is no cable in {place}.")
        first, second = cables
        assert first and second
        self._check_fits(first, other)
        self._check_fits(second, end)
        if end == other:
            raise WiringError(f"{end} is one port, and two are exchanged.")
        indices = first.ends.index(end), second.ends.index(other)
        self._put(first, indices[0], other)
        self._put(second, indices[1], end)

    def degrade(self, end: Place, *, dead: bool | None = None, corrected_errors: int | None = None) -> Cable:
        """Make the cable in a port worse, or better. Raises WiringError."""
        cable = self._at.get(end)
        if cable is None:
            raise WiringError(f"There is no cable in {end}.")
        if corrected_errors is not None and corrected_errors < 0:
            raise WiringError(f"{end}: a number of corrected errors is not negative.")
        cable.dead = cable.dead if dead is None else dead
        cable.corrected_errors = cable.corrected_errors if corrected_errors is None else corrected_errors
        return cable

    def repair(self, agents: set[str]) -> None:
        """Put every cable that belongs to one of these machines, or is in one, where it belongs, as good as new."""
        affected = [
            cable
            for cable in self.cables
            if any(place and place.agent in agents for place in (*cable.ends, *cable.home)) and not _healthy(cable)
        ]
        # Whoever is in the way there is not where it belongs either.
        for cable in affected:
            in_the_way = (self._at.get(home) for home in cable.home)
            affected += [other for other in in_the_way if other is not None and other not in affected]
        for cable in affected:
            for end in cable.ends:
                if end is not None:
                    del self._at[end]
            cable.ends = [None, None]
        for cable in affected:
            for index, home in enumerate(cable.home):
                self._put(cable, index, home)
            cable.dead, cable.corrected_errors = False, 0

    def wrong(self) -> Iterator[Wrong]:
        """What is not as it was delivered: each end of each cable, and how good it is."""
        for cable in self.cables:
            if _healthy(cable):
                continue
            name = f"{cable.kind} cable {cable.home[0]} <-> {cable.home[1]}"
            homes = tuple(map(str, cable.home))
            for end, home in zip(cable.ends, homes, strict=True):
                if end is None:
                    yield Wrong("unplug", home, f"{name}: not plugged in at {home}.", "", home, homes)
                elif str(end) != home:
                    yield Wrong("move", home, f"{name}: in {end} instead of {home}.", str(end), home, homes)
            if cable.dead:
                yield Wrong("break", homes[0], f"{name}: broken.", cable=homes)
            if cable.corrected_errors:
                errors = str(cable.corrected_errors)
                sentence = f"{name}: {errors} corrected errors in every run of traffic."
                yield Wrong("errors", homes[0], sentence, errors, "0", homes)

    # What electricity does

    def serial(self, place: Place) -> str:
        """The serial id of the cable in a port, as its plug tells; empty without one. A broken cable has it, too."""
        cable = self._at.get(place)
        return cable.serial if cable else ""

    def peer(self, place: Place) -> Place | None:
        """The port that a signal from this one reaches: by a whole cable, of a machine that is alive."""
        cable = self._at.get(place)
        if cable is None or cable.dead:
            return None
        there = cable.other(place)
        if there is None or not self.machines[there.agent].alive:
            return None
        return there

    def send(self, place: Place, count: int) -> None:
        """Send sync pulses out of a port."""
        there = self.peer(place)
        if there:
            self.machines[there.agent].pulsed(there.kind, there.port, count)

    def trains(self, place: Place) -> bool:
        """Whether a link comes up here: something of its own kind is at the other end."""
        there = self.peer(place)
        return there is not None and there.kind is place.kind

    def errors(self, place: Place) -> int:
        """Errors that are corrected at this port while traffic runs."""
        cable = self._at.get(place)
        return cable.corrected_errors if cable else 0

    def _put(self, cable: Cable, index: int, place: Place) -> None:
        cable.ends[index] = place
        self._at[place] = cable

    def _check_free(self, place: Place) -> None:
        if place in self._at:
            raise WiringError(f"There is a cable in {place} already: unplug that first, or swap the two.")

    @staticmethod
    def _check_fits(cable: Cable, place: Place) -> None:
        if (cable.kind is CableKind.SYNC_LINK) != (place.kind is CableKind.SYNC_LINK):
            raise WiringError(f"The plug of a cable for {cable.kind}s does not fit into {place}.")


def _healthy(cable: Cable) -> bool:
    return tuple(cable.ends) == cable.home and not cable.dead and not cable.corrected_errors
