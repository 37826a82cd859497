# SPDX-License-Identifier: GPL-3.0-or-later
"""What is plugged into a switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Neighbour:
    """What is at the other end of the cable of a port.

    Args:
        name: LLDP system name; empty for a device that does not speak LLDP.
        chassis: its LLDP chassis id, a MAC address.
        port: LLDP id of its port.
        macs: addresses learnt on this port, with the VLAN of tagged ones (None is the port's own VLAN).
        up: whether the link is up.
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


class Surroundings(Protocol):
    """What is plugged into a switch."""

    def neighbour(self, port: str) -> Neighbour | None:
        """What is at the other end of the cable of a port; None when nothing is plugged in."""


class Nothing:
    """A switch with no cable in it."""

    def neighbour(self, port: str) -> Neighbour | None:
        """Nothing, on any port."""
        return None
