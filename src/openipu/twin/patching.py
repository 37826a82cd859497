# SPDX-License-Identifier: GPL-3.0-or-later
"""The cables between the devices of a rack and the ports of its switches: what is plugged in where.

A port is written ``tor1:Ethernet9/1``. Only the end in the switch moves; what is heard through it is that
of the device at the other end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from openipu.twin.eos.surroundings import Neighbour
from openipu.twin.wiring import WiringError, Wrong


@dataclass
class Patch:
    """One cable of a device.

    Args:
        device: whose it is.
        connector: of the device.
        home: the port of a switch that it belongs into.
        neighbour: what a switch hears through it.
        port: the port that it is in, None when it is loose.
    """

    device: str
    connector: str
    home: str
    neighbour: Neighbour
    port: str | None = None

    def __str__(self) -> str:
        return f"cable {self.device} {self.connector}"


class Patching:
    """All of these cables.

    Args:
        patches: the cables, which are plugged in where they belong.
        ports: all ports of each switch.
        powered: whether a device has power.
    """

    def __init__(
        self, patches: Collection[Patch], ports: Mapping[str, Collection[str]], powered: Callable[[str], bool]
    ) -> None:
        self._patches = list(patches)
        self._ports = {f"{switch}:{port}" for switch, names in ports.items() for port in names}
        self._powered = powered
        self._at: dict[str, Patch] = {}
        for patch in self._patches:
            self._put(patch, patch.home)

    def neighbour(self, port: str) -> Neighbour | None:
        """What a switch meets in one of its ports; None when nothing is plugged in, or has no power."""
        patch = self._at.get(port)
        return patch.neighbour if patch and self._powered(patch.device) else None

    # What hands do

    def unplug(self, port: str) -> None:
        """Pull a cable out. Raises WiringError."""
        self._taken(port).port = None
        del self._at[port]

    def plug(self, port: str) -> None:
        """Put the loose cable that belongs into a port back there. Raises WiringError."""
        self._check_free(port)
        for patch in self._patches:
            if patch.home == port and patch.port is None:
                self._put(patch, port)
                return
        raise WiringError(f"No loose cable belongs into {port}.")

    def move(self, port: str, to: str) -> None:
        """Move a cable to a free port. Raises WiringError."""
        patch = self._taken(port)
        self._check_free(to)
        del self._at[port]
        self._put(patch, to)

    def swap(self, port: str, other: str) -> None:
        """Exchange two cables. Raises WiringError."""
        if port == other:
            raise WiringError(f"{port} is one port, and two are exchanged.")
        first, second = self._taken(port), self._taken(other)
        self._put(first, other)
        self._put(second, port)

    def repair(self, devices: Collection[str]) -> None:
        """Put every cable of these devices, or in a port of one of them, where it belongs."""
        affected = [patch for patch in self._patches if patch.port != patch.home and self._concerns(patch, devices)]
        # Whoever is in the way there is not where it belongs either.
        for patch in affected:
            in_the_way = self._at.get(patch.home)
            if in_the_way is not None and in_the_way not in affected:
                affected.append(in_the_way)
        for patch in affected:
            if patch.port is not None:
                del self._at[patch.port]
        for patch in affected:
            self._put(patch, patch.home)

    def wrong(self) -> Iterator[Wrong]:
        """The cables that are not where they belong."""
        for patch in self._patches:
            if patch.port is None:
                yield Wrong("unplug", patch.home, f"{patch}: not plugged in at {patch.home}.", "", patch.home)
            elif patch.port != patch.home:
                sentence = f"{patch}: in {patch.port} instead of {patch.home}."
                yield Wrong("move", patch.home, sentence, patch.port, patch.home)

    def _put(self, patch: Patch, port: str) -> None:
        patch.port = port
        self._at[port] = patch

    def _taken(self, port: str) -> Patch:
        self._check_there(port)
        if port not in self._at:
            raise WiringError(f"There is no cable in {port}.")
        return self._at[port]

    def _check_free(self, port: str) -> None:
        self._check_there(port)
        if port in self._at:
            raise WiringError(f"There is a cable in {port} already: unplug that first, or swap the two.")

    def _check_there(self, port: str) -> None:
        if port not in self._ports:
            switch, _, name = port.partition(":")
            raise WiringError(f"Switch {switch!r} has no port {name!r}: write it like tor1:Ethernet9/1.")

    @staticmethod
    def _concerns(patch: Patch, devices: Collection[str]) -> bool:
        return any(port.partition(":")[0] in devices for port in (patch.home, patch.port or "")) or (
            patch.device in devices
        )
