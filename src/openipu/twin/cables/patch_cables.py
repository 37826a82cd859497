# SPDX-License-Identifier: GPL-3.0-or-later
"""Patch cables between the devices of a rack and the ports of its switches.

A port is written ``tor1:Ethernet9/1``. Only the end in the switch moves; the other end stays in its device.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.cables.wiring import Defect, WiringError


@dataclass
class PatchCable:
    """One cable of a device.

    Args:
        device: name of the device.
        connector: connector of the device.
        home: the correct switch port.
        neighbour: the device as the switch detects it.
        port: the current switch port; None for a loose cable.
    """

    device: str
    connector: str
    home: str
    neighbour: Neighbour
    port: str | None = None

    def __str__(self) -> str:
        return f"cable {self.device} {self.connector}"


class PatchCables:
    """All patch cables of a rack.

    Args:
        cables: the cables; each starts in its correct port.
        ports: all ports of each switch.
        powered: returns whether a device has power.
    """

    def __init__(
        self, cables: Collection[PatchCable], ports: Mapping[str, Collection[str]], powered: Callable[[str], bool]
    ) -> None:
        self._cables = list(cables)
        self._ports = {f"{switch}:{port}" for switch, names in ports.items() for port in names}
        self._powered = powered
        self._at: dict[str, PatchCable] = {}
        for cable in self._cables:
            self._plug_in(cable, cable.home)

    def neighbour(self, port: str) -> Neighbour | None:
        """Return the device at the other end of the cable of a port; None for an empty port.

        The link of a device without power is down.
        """
        cable = self._at.get(port)
        if cable is None:
            return None
        return cable.neighbour if self._powered(cable.device) else replace(cable.neighbour, up=False)

    # Changes by hand

    def unplug(self, port: str) -> None:
        """Pull a cable out. Raises WiringError."""
        self._cable_in(port).port = None
        del self._at[port]

    def plug(self, port: str) -> None:
        """Plug the loose cable of a port back in. Raises WiringError."""
        self._check_free(port)
        for cable in self._cables:
            if cable.home == port and cable.port is None:
                self._plug_in(cable, port)
                return
        raise WiringError(f"Cannot plug a cable into '{port}': the port has no loose cable. Unplug its cable first.")

    def move(self, port: str, to: str) -> None:
        """Move a cable to a free port. Raises WiringError."""
        cable = self._cable_in(port)
        self._check_free(to)
        del self._at[port]
        self._plug_in(cable, to)

    def swap(self, port: str, other: str) -> None:
        """Exchange two cables. Raises WiringError."""
        if port == other:
            raise WiringError(f"Cannot swap '{port}' with itself: the ports are equal. Name two different ports.")
        first, second = self._cable_in(port), self._cable_in(other)
        self._plug_in(first, other)
        self._plug_in(second, port)

    def repair(self, devices: Collection[str]) -> None:
        """Return every cable of these devices, or in a port of one of them, to its correct port."""
        affected = [cable for cable in self._cables if cable.port != cable.home and self._concerns(cable, devices)]
        # A cable that blocks a correct port is misplaced too.
        for cable in affected:
            blocking = self._at.get(cable.home)
            if blocking is not None and blocking not in affected:
                affected.append(blocking)
        for cable in affected:
            if cable.port is not None:
                del self._at[cable.port]
        for cable in affected:
            self._plug_in(cable, cable.home)

    def defects(self) -> Iterator[Defect]:
        """Yield the cables that are not in their correct ports."""
        for cable in self._cables:
            if cable.port is None:
                yield Defect("unplug", cable.home, f"{cable}: not plugged in at {cable.home}.", "", cable.home)
            elif cable.port != cable.home:
                message = f"{cable}: in {cable.port} instead of {cable.home}."
                yield Defect("move", cable.home, message, cable.port, cable.home)

    def _plug_in(self, cable: PatchCable, port: str) -> None:
        cable.port = port
        self._at[port] = cable

    def _cable_in(self, port: str) -> PatchCable:
        self.check_exists(port)
        if port not in self._at:
            raise WiringError(f"Cannot find a cable in '{port}': the port is empty. Name a port with a cable.")
        return self._at[port]

    def _check_free(self, port: str) -> None:
        self.check_exists(port)
        if port in self._at:
            raise WiringError(f"Cannot use port '{port}': it is not free. Unplug its cable first, or swap the two.")

    def check_exists(self, port: str) -> None:
        """Raise WiringError unless a switch has this port."""
        if port not in self._ports:
            switch, _, name = port.partition(":")
            if not name:
                raise WiringError(f"Cannot read port {port!r}: the port is missing. Write SWITCH:PORT.")
            raise WiringError(
                f"Cannot find port {name!r}: switch {switch!r} does not have it. Write it like tor1:Ethernet9/1."
            )

    @staticmethod
    def _concerns(cable: PatchCable, devices: Collection[str]) -> bool:
        return any(port.partition(":")[0] in devices for port in (cable.home, cable.port or "")) or (
            cable.device in devices
        )
