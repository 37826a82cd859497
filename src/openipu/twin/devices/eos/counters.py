# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters of interfaces. The twin carries no traffic of users, but the protocols of an idle switch.

Frames on each link that is up: LLDP in both directions, BPDUs of the root bridge, and LACP in port-channels.
The counters are integrals of these rates over time. So call `Counters.settle` before each change of links or
configuration, and before the counters are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from openipu.twin.devices.eos.forwarding import Forwarding, Interface
from openipu.twin.devices.eos.ports import kind_of

_LLDP_OCTETS, _BPDU_OCTETS, _LACP_OCTETS = 216, 119, 128  # length of a frame with its checksum
_LLDP_SECONDS, _HELLO_SECONDS, _LACP_SECONDS = 30.0, 2.0, {"normal": 30.0, "fast": 1.0}


@dataclass(frozen=True)
class Rates:
    """Rates of frames and octets in both directions, per second; all frames are multicast."""

    frames_in: float = 0.0
    octets_in: float = 0.0
    frames_out: float = 0.0
    octets_out: float = 0.0

    def __add__(self, other: Rates) -> Rates:
        return Rates(
            self.frames_in + other.frames_in,
            self.octets_in + other.octets_in,
            self.frames_out + other.frames_out,
            self.octets_out + other.octets_out,
        )

    def over(self, seconds: float) -> Rates:
        """Return the number of frames and octets in this time."""
        return Rates(*(each * seconds for each in (self.frames_in, self.octets_in, self.frames_out, self.octets_out)))


NOTHING = Rates()


def rates_of(port: Interface, forwarding: Forwarding) -> Rates:
    """Return the rates of a physical port."""
    root, other = forwarding.config.root, port.neighbour
    if not port.up or kind_of(port.name) not in {"Ethernet", "Management"}:
        return NOTHING
    rates = NOTHING
    if not root.get("lldp", "run"):
        timer = float(root.value("lldp", "timer") or _LLDP_SECONDS)
        if not port.block.get("lldp", "transmit"):
            rates += Rates(frames_out=1 / timer, octets_out=_LLDP_OCTETS / timer)
        if other is not None and other.name:
            rates += Rates(frames_in=1 / _LLDP_SECONDS, octets_in=_LLDP_OCTETS / _LLDP_SECONDS)
    spanning_tree = (root.value("spanning-tree", "mode") or "mstp") != "none"
    bridged = kind_of(port.name) == "Ethernet" and (bool(port.group[0]) or port.vlans.mode != "routed")
    if spanning_tree and bridged:
        rates += Rates(frames_out=1 / _HELLO_SECONDS, octets_out=_BPDU_OCTETS / _HELLO_SECONDS)
    if port.group[1] in {"active", "passive"} and other is not None and other.lacp:
        period = _LACP_SECONDS[port.block.value("lacp", "timer") or "normal"]
        one = Rates(1 / period, _LACP_OCTETS / period)
        rates += Rates(one.frames_in, one.octets_in, one.frames_in, one.octets_in)
    return rates


@dataclass
class Counter:
    """Totals of one port since the last `clear counters`, and its changes of state since the start."""

    totals: Rates = field(default_factory=Rates)
    up: bool = False
    changes: int = 0
    changed: float = 0.0


class Counters:
    """Counters of the physical ports of a switch.

    Args:
        forwarding: returns the present state of the switch.
        clock: time in seconds since the epoch.
    """

    def __init__(self, forwarding: Callable[[], Forwarding], clock: Callable[[], float]) -> None:
        self._forwarding = forwarding
        self._clock = clock
        self._ports: dict[str, Counter] = {}
        self._settled = self.started = clock()

    def settle(self) -> None:
        """Count up to now with the present rates."""
        now, forwarding = self._clock(), self._forwarding()
        seconds, self._settled = max(0.0, now - self._settled), now
        for port in forwarding.interfaces.values():
            if port.name not in forwarding.config.ports.physical:
                continue
            counter = self._ports.get(port.name)
            if counter is None:
                counter = self._ports[port.name] = Counter(up=port.up, changed=self.started)
            if counter.up != port.up:
                counter.up, counter.changed = port.up, now
                counter.changes += 1
            counter.totals += rates_of(port, forwarding).over(seconds)

    def of(self, port: str) -> Counter:
        """Return the counters of a port as of the last `settle`."""
        return self._ports.get(port) or Counter(changed=self.started)

    def clear(self, ports: Iterable[str]) -> None:
        """Set the totals of these ports to zero."""
        self.settle()
        for port in ports:
            if port in self._ports:
                self._ports[port].totals = NOTHING
