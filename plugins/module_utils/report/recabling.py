# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Minimal steps from the actual to the desired cabling. No I/O.

Each port has one desired partner and at most one actual partner. These relations connect the wrong ports to chains
and rings. A chain with an empty port at its end is fixed by moves that start there; each move empties the next port.
A ring of n cables has no empty port and needs n - 1 exchanges. A chain without an empty port has one cable too many.
"""

from __future__ import annotations

import typing as t

from .chassis_ports import ChassisPort, Pair, pair

REMOVE, MOVE, EXCHANGE, CONNECT = "remove", "move", "exchange", "connect"


class Step(t.NamedTuple):
    """One step with two ports. ``cables`` are the desired cables that the step completes.

    ``remove`` the cable between the ports, ``move`` an end from one to the other, ``exchange`` the ends in both, or
    ``connect`` them with another cable.
    """

    verb: str
    one: ChassisPort
    other: ChassisPort
    cables: tuple[Pair, ...] = ()


def steps(desired: t.Iterable[Pair], actual: t.Iterable[Pair], empty: t.Container[ChassisPort] = ()) -> list[Step]:
    """Return the steps in order; each is possible after the previous ones.

    ``desired`` are the missing cables, ``actual`` the misplaced ones. Ports in ``empty`` hold no loose cable, so they
    are filled before other ports without a known cable. Of contradictory entries, the first counts.
    """
    return _Recabling(_both_ways(desired), _both_ways(actual)).steps(empty)


def _both_ways(pairs: t.Iterable[Pair]) -> dict[ChassisPort, ChassisPort]:
    found: dict[ChassisPort, ChassisPort] = {}
    for one, other in pairs:
        if one != other and one not in found and other not in found:
            found[one], found[other] = other, one
    return found


class _Recabling:
    """Ports that are still wrong, updated by each step."""

    def __init__(self, desired: dict[ChassisPort, ChassisPort], actual: dict[ChassisPort, ChassisPort]) -> None:
        self.desired = desired
        self.actual = actual

    def steps(self, empty: t.Container[ChassisPort]) -> list[Step]:
        found = []
        for port in sorted(self._fillable(), key=lambda port: port not in empty):
            found += self._fill(port)
        while spare := next((port for port in self.actual if port not in self.desired), None):
            other = self._unplug(spare)
            found += [Step(REMOVE, other, spare), *self._fill(other)]
        while self.actual:
            found.append(self._exchange())
        found += [Step(CONNECT, one, other, ((one, other),)) for one, other in self.desired.items() if one < other]
        return found

    def _fillable(self) -> list[ChassisPort]:
        return [port for port in self.desired if port not in self.actual and self.desired[port] in self.actual]

    def _fill(self, port: ChassisPort) -> list[Step]:
        """Fill an empty port, then each port that this empties."""
        found = []
        while (partner := self.desired.get(port)) in self.actual and port not in self.actual:
            source = self._unplug(partner)
            found.append(Step(MOVE, source, port, (self._settle(port),)))
            port = source
        return found

    def _exchange(self) -> Step:
        """Exchange two ends of a ring, within one machine if possible."""
        choices = [(port, self.actual[partner]) for port, partner in self.desired.items() if partner in self.actual]
        one, other = next((pair for pair in choices if pair[0][0] == pair[1][0]), choices[0])
        self._unplug(other)
        far = self._unplug(one)
        cables = [self._settle(one)]
        if self.desired.get(other) == far:
            cables.append(self._settle(other))
        else:
            self.actual[other], self.actual[far] = far, other
        return Step(EXCHANGE, one, other, tuple(cables))

    def _unplug(self, port: ChassisPort) -> ChassisPort:
        """Remove the cable in a port and return the port at its other end."""
        other = self.actual.pop(port)
        del self.actual[other]
        return other

    def _settle(self, port: ChassisPort) -> Pair:
        """Mark a port and its partner as correct and return their cable."""
        partner = self.desired.pop(port)
        del self.desired[partner]
        return pair(port, partner)
