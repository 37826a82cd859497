# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the breakers of a PDU still let through, and whether what is to be powered fits. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..reconcile import SentenceError

# What a PDU between phase and neutral delivers when it does not tell its voltage: IEC 60038.
NOMINAL_VOLTAGE = 230.0
_ROUNDING = 0.05  # A: half of what PDUs tell, so that a load which just fits does fit


@dataclass(frozen=True)
class Circuit:
    """What one breaker protects: a phase (the PDU's own feed) or a bank of outlets.

    ``current`` flows at present and ``breaker`` is the most that may, in A; either is None when it is not
    told. ``voltage`` is in V. ``phases`` are those that a bank draws from: one, or two between which it lies.
    """

    kind: str  # "phase" or "bank"
    number: int
    current: float | None
    breaker: float | None
    voltage: float | None = None
    phases: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """For sentences."""
        return "%s %d" % (self.kind, self.number)

    @property
    def volts(self) -> float:
        """The voltage that is reckoned with."""
        return self.voltage or NOMINAL_VOLTAGE

    def headroom(self, share: float = 1.0) -> float | None:
        """A that may be drawn in addition, below zero when too much is drawn already; None when not known."""
        if self.current is None or self.breaker is None:
            return None
        return self.breaker * share - self.current

    def headroom_power(self, share: float = 1.0) -> float | None:
        """The same in kW (of a power factor of 1)."""
        amperes = self.headroom(share)
        return None if amperes is None else amperes * self.volts / 1000


@dataclass(frozen=True)
class Load:
    """What is to be powered: ``power`` in kW, on a bank or a phase, or, with neither, spread evenly."""

    power: float
    phase: int | None = None
    bank: int | None = None


@dataclass(frozen=True)
class Feed:
    """A PDU as its breakers see it: present ``power`` and ``rating`` of all of it in kW, None when not told."""

    power: float | None
    rating: float | None
    circuits: tuple[Circuit, ...]

    def of(self, kind: str) -> list[Circuit]:
        """All phases, or all banks."""
        return [circuit for circuit in self.circuits if circuit.kind == kind]


@dataclass(frozen=True)
class Excess:
    """A breaker that what is to be powered would exceed; A for a phase or a bank, kW for the whole PDU."""

    kind: str  # "phase", "bank" or "device"
    number: int | None
    present: float
    added: float
    limit: float

    @property
    def sentence(self) -> str:
        """A part of a sentence that says all numbers."""
        unit = "kW" if self.kind == "device" else "A"
        name = "the whole PDU" if self.kind == "device" else "%s %d" % (self.kind, self.number or 0)
        return "%s would carry %s %s of at most %s %s (%s now and %s more)" % (
            name,
            figure(self.present + self.added),
            unit,
            figure(self.limit),
            unit,
            figure(self.present),
            figure(self.added),
        )


def figure(value: float) -> str:
    """A number as people write it: one decimal, or none."""
    return ("%.1f" % value).removesuffix(".0")


def additional(feed: Feed, loads: t.Sequence[Load]) -> dict[tuple[str, int], float]:
    """The current in A that the loads add to each phase and each bank, by kind and number.

    A load with no place is spread evenly over the phases, one on a phase over the banks of that phase.
    What is drawn between two phases counts whole in both, which is never too little. Raises SentenceError
    for a phase or a bank that there is not.
    """
    added: dict[tuple[str, int], float] = {(circuit.kind, circuit.number): 0.0 for circuit in feed.circuits}
    phases, banks = feed.of("phase"), feed.of("bank")
    for load in loads:
        if load.power < 0:
            raise SentenceError("A load of %s kW is none: give what is added." % figure(load.power))
        if load.bank is not None:
            _on_bank(added, _find(banks, "bank", load.bank), load.power)
        elif load.phase is not None:
            _on_phase(added, _find(phases, "phase", load.phase), banks, load.power)
        else:
            for phase in phases:
                _on_phase(added, phase, banks, load.power / len(phases))
    return added


def _find(circuits: list[Circuit], kind: str, number: int) -> Circuit:
    for circuit in circuits:
        if circuit.number == number:
            return circuit
    there = "it has %ss %d to %d" % (kind, circuits[0].number, circuits[-1].number) if circuits else "it has none"
    raise SentenceError("The PDU has no %s %d: %s." % (kind, number, there))


def _on_bank(added: dict[tuple[str, int], float], bank: Circuit, power: float) -> None:
    current = power * 1000 / bank.volts
    added["bank", bank.number] += current
    for phase in bank.phases:
        if ("phase", phase) in added:
            added["phase", phase] += current


def _on_phase(added: dict[tuple[str, int], float], phase: Circuit, banks: list[Circuit], power: float) -> None:
    # A bank between two phases belongs to the one that is named first.
    behind = [bank for bank in banks if bank.phases[:1] == (phase.number,)]
    for bank in behind:
        _on_bank(added, bank, power / len(behind))
    if not behind:
        added["phase", phase.number] += power * 1000 / phase.volts


def excesses(feed: Feed, loads: t.Sequence[Load], share: float = 1.0) -> list[Excess]:
    """The breakers that would carry more than ``share`` of their rating; what is not told is not judged.

    Only what the loads add to is looked at. Raises SentenceError for a place that there is not.
    """
    found = []
    total = sum(load.power for load in loads)
    if feed.power is not None and feed.rating is not None and total > 0:
        limit = feed.rating * share
        if feed.power + total > limit + _ROUNDING:
            found.append(Excess("device", None, feed.power, total, limit))
    added = additional(feed, loads)
    for circuit in feed.circuits:
        more = added[circuit.kind, circuit.number]
        room = circuit.headroom(share)
        if more > 0 and room is not None and more > room + _ROUNDING:
            found.append(
                Excess(circuit.kind, circuit.number, circuit.current or 0.0, more, (circuit.breaker or 0.0) * share)
            )
    return found


def up_to(feed: Feed, power: float) -> Load:
    """What is still to come until the PDU delivers ``power`` in all, in kW; nothing when it does already."""
    present = feed.power
    if present is None:
        present = sum((phase.current or 0.0) * phase.volts / 1000 for phase in feed.of("phase"))
    return Load(max(0.0, power - present))


def refusal(name: str, loads: t.Sequence[Load], found: t.Sequence[Excess]) -> str:
    """Why the loads are not to be powered from the PDU of this name, in one sentence."""
    return "%s cannot take %s kW more: %s. Power less of it, or move load to another PDU." % (
        name,
        figure(sum(load.power for load in loads)),
        "; ".join(excess.sentence for excess in found),
    )
