# SPDX-License-Identifier: GPL-3.0-or-later
"""Power distribution of a rack twin: the devices at each PDU outlet, and their power draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

# W, all power supplies of a device together. An IPU of an IPU-M2000 is rated at 150 W, a machine at about 1.1 kW.
MACHINE_IDLE = 500.0
MACHINE_PER_BUSY_IPU = 150.0
STEADY = {"server": 450.0, "switch": 120.0}


@dataclass(frozen=True)
class Feed:
    """A device, and the PDUs that feed its power supplies."""

    device: str
    pdus: Sequence[str]


class PowerDistribution:
    """Connections of devices to PDU outlets, and the resulting loads.

    Args:
        feeds: the devices, those of one kind one after the other.
        outlets: the outlets of each PDU in the order in which they are used, one for each device.
        draw: returns the W that a device draws.
    """

    def __init__(
        self, feeds: Sequence[Feed], outlets: Mapping[str, Sequence[int]], draw: Callable[[str], float]
    ) -> None:
        self._draw = draw
        self._device: dict[tuple[str, int], str] = {}
        self._outlets: dict[str, list[tuple[str, int]]] = {feed.device: [] for feed in feeds}
        self._off: set[tuple[str, int]] = set()
        for pdu, numbers in outlets.items():
            fed = (feed.device for feed in feeds if pdu in feed.pdus)
            for device, number in zip(fed, numbers, strict=False):  # others are fed from elsewhere
                self._device[pdu, number] = device
                self._outlets[device].append((pdu, number))

    def watts(self, pdu: str, outlet: int) -> float:
        """Return the W drawn from an outlet: a device draws equally from all of its live outlets."""
        device = self._device.get((pdu, outlet))
        if device is None or (pdu, outlet) in self._off:
            return 0.0
        return self._draw(device) / len(list(self._live_outlets(device)))

    def has_power(self, device: str) -> bool:
        """Return whether a device has power; a device without a PDU always has."""
        return not self._outlets.get(device) or any(True for _ in self._live_outlets(device))

    def switch(self, pdu: str, outlet: int, on: bool) -> str | None:
        """Switch an outlet; return its device if this cut or restored the power of the device."""
        device = self._device.get((pdu, outlet))
        before = device is None or self.has_power(device)
        (self._off.discard if on else self._off.add)((pdu, outlet))
        return device if device is not None and self.has_power(device) != before else None

    def outlets(self, device: str) -> list[tuple[str, int]]:
        """Return the outlets of a device, as PDU and number."""
        return list(self._outlets.get(device, ()))

    def _live_outlets(self, device: str) -> Iterator[tuple[str, int]]:
        return (place for place in self._outlets[device] if place not in self._off)
