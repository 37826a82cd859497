# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where cables are, and where they should be, to the fewest steps that put them right. Pure.

A port has one port that it should be joined with, and at most one that its cable leads to now. Along
these two the ports that are wrong hang together as chains and rings. A chain with an empty port at its
end is put right by moves, from there on: each makes the next port empty. A ring of n cables has no
empty port, and takes n - 1 exchanges. A chain with no empty port has one cable too many.
"""

from __future__ import annotations

import typing as t

from .ends import End, Pair, pair

REMOVE, MOVE, EXCHANGE, CONNECT = "remove", "move", "exchange", "connect"


class Step(t.NamedTuple):
    """``remove`` the cable between two ports, ``move`` the end in one to the other, ``exchange`` those in both, or
    ``connect`` them with another cable. ``cables`` are in order afterwards, each by the ports where it belongs.
    """

    verb: str
    one: End
    other: End
    cables: tuple[Pair, ...] = ()


def steps(wanted: t.Iterable[Pair], actual: t.Iterable[Pair], empty: t.Container[End] = ()) -> list[Step]:
    """What to do, each step possible after those before it.

    ``wanted`` are the cables that are missing, ``actual`` those that are where none should be. Of those
    ports that no known cable is in, the ``empty`` ones hold no loose cable either, so they are filled first.
    Of lines that contradict each other the first counts.
    """
    return _Bench(_both_ways(wanted), _both_ways(actual)).all(empty)


def _both_ways(pairs: t.Iterable[Pair]) -> dict[End, End]:
    found: dict[End, End] = {}
    for one, other in pairs:
        if one != other and one not in found and other not in found:
            found[one], found[other] = other, one
    return found


class _Bench:
    """The ports that are not in order yet, while one step after the other is taken."""

    def __init__(self, should: dict[End, End], leads: dict[End, End]) -> None:
        self.should = should
        self.leads = leads

    def all(self, empty: t.Container[End]) -> list[Step]:
        found = []
        for port in sorted(self._fillable(), key=lambda port: port not in empty):
            found += self._fill(port)
        while spare := next((port for port in self.leads if port not in self.should), None):
            other = self._unplug(spare)
            found += [Step(REMOVE, other, spare), *self._fill(other)]
        while self.leads:
            found.append(self._exchange())
        found += [Step(CONNECT, one, other, ((one, other),)) for one, other in self.should.items() if one < other]
        return found

    def _fillable(self) -> list[End]:
        return [port for port in self.should if port not in self.leads and self.should[port] in self.leads]

    def _fill(self, port: End) -> list[Step]:
        """Fill an empty port, then the one that this makes empty, and so on."""
        found = []
        while (partner := self.should.get(port)) in self.leads and port not in self.leads:
            source = self._unplug(partner)
            found.append(Step(MOVE, source, port, (self._settle(port),)))
            port = source
        return found

    def _exchange(self) -> Step:
        """Exchange two ends of a ring, within one machine where that is possible."""
        choices = [(port, self.leads[partner]) for port, partner in self.should.items() if partner in self.leads]
        one, other = next((pair for pair in choices if pair[0][0] == pair[1][0]), choices[0])
        self._unplug(other)
        far = self._unplug(one)
        cables = [self._settle(one)]
        if self.should.get(other) == far:
            cables.append(self._settle(other))
        else:
            self.leads[other], self.leads[far] = far, other
        return Step(EXCHANGE, one, other, tuple(cables))

    def _unplug(self, port: End) -> End:
        """The cable in a port is not counted any more; gives the port at its other end."""
        other = self.leads.pop(port)
        del self.leads[other]
        return other

    def _settle(self, port: End) -> Pair:
        """A port and its partner are in order."""
        partner = self.should.pop(port)
        del self.should[partner]
        return pair(port, partner)
