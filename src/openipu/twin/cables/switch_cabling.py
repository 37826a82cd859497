# SPDX-License-Identifier: GPL-3.0-or-later
"""Cabling of a switch: the device at the other end of each port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Neighbour:
    """The device at the other end of the cable of a port.

    Args:
        name: LLDP system name; empty for a device that does not speak LLDP.
        chassis: its LLDP chassis id, a MAC address.
        port: LLDP id of its port.
        macs: addresses learnt on this port, with the VLAN of tagged ones (None is the port's own VLAN).
        up: whether its link is up.
        description: its LLDP system description.
        lacp: whether it speaks LACP.
    """

    name: str = ""
    chassis: str = ""
    port: str = ""
    macs: tuple[tuple[str, int | None], ...] = ()
    up: bool = True
    description: str = ""
    lacp: bool = True


class SwitchCabling(Protocol):
    """Cables in the ports of a switch."""

    def neighbour(self, port: str) -> Neighbour | None:
        """Return the device at the other end of the cable in a port; None for an empty port."""


class NoCabling:
    """Cabling of a switch without cables."""

    def neighbour(self, port: str) -> Neighbour | None:
        """Return None: every port is empty."""
        return None
