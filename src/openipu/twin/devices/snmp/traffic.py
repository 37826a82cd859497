# SPDX-License-Identifier: GPL-3.0-or-later
"""Traffic of an SNMP agent at the management interface. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

_OVERHEAD = 14 + 20 + 8 + 4  # bytes of Ethernet, IPv4 and UDP headers, and of the frame check sequence
_SHORTEST_FRAME = 64  # bytes


def _octets(datagram: int) -> int:
    return max(_SHORTEST_FRAME, datagram + _OVERHEAD)


@dataclass(slots=True)
class Traffic:
    """Frames since the agent started. Both methods take the length of a datagram in bytes."""

    in_packets: int = 0
    in_octets: int = 0
    out_packets: int = 0
    out_octets: int = 0

    def received(self, datagram: int) -> None:
        """Count a received datagram."""
        self.in_packets += 1
        self.in_octets += _octets(datagram)

    def sent(self, datagram: int) -> None:
        """Count a sent datagram."""
        self.out_packets += 1
        self.out_octets += _octets(datagram)
