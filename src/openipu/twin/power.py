# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is fed by which outlet of the PDUs of a rack twin, and how much that takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# Watts: of the order of what data sheets give for such devices, each supply taking its part.
MACHINE_IDLE = 500.0
MACHINE_PER_BUSY_IPU = 200.0
STEADY = {"server": 450.0, "switch": 120.0}


@dataclass(frozen=True)
class Feed:
    """A device and the PDUs that its power supplies are plugged into."""

    device: str
    pdus: Sequence[str]


class Power:
    """The power of a rack.

    Args:
        feeds: the devices, from the lowest in the rack up.
        outlets: how many each PDU has; those of a PDU are given out evenly.
        draw: watts that a device takes while it is fed.
    """

    def __init__(self, feeds: Sequence[Feed], outlets: Mapping[str, int], draw: Callable[[str], float]) -> None:
        self._draw = draw
        self._device: dict[tuple[str, int], str] = {}
        self._outlets: dict[str, list[tuple[str, int]]] = {feed.device: [] for feed in feeds}
        self._off: set[tuple[str, int]] = set()
        for pdu, count in outlets.items():
            fed = [feed.device for feed in feeds if pdu in feed.pdus][:count]
            for index, device in enumerate(fed):
                place = (pdu, 1 + index * count // len(fed))
                self._device[place] = device
                self._outlets[device].append(place)

    def watts(self, pdu: str, outlet: int) -> float:
        """What is taken from an outlet: a device takes equal parts from all outlets that feed it."""
        device = self._device.get((pdu, outlet))
        if device is None or (pdu, outlet) in self._off:
            return 0.0
        return self._draw(device) / len(list(self._feeding(device)))

    def fed(self, device: str) -> bool:
        """Whether a device has power; one that is at no PDU has."""
        return not self._outlets.get(device) or any(True for _ in self._feeding(device))

    def switch(self, pdu: str, outlet: int, on: bool) -> str | None:
        """An outlet was switched; the device that it feeds when that lost its power by it, or got it back."""
        device = self._device.get((pdu, outlet))
        before = device is None or self.fed(device)
        (self._off.discard if on else self._off.add)((pdu, outlet))
        return device if device is not None and self.fed(device) != before else None

    def outlets(self, device: str) -> list[tuple[str, int]]:
        """The outlets that a device is plugged into, as PDU and number."""
        return list(self._outlets.get(device, ()))

    def _feeding(self, device: str) -> Iterator[tuple[str, int]]:
        return (place for place in self._outlets[device] if place not in self._off)
