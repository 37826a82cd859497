# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Headroom of the breakers of a PDU, and a check whether more load fits. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..reconcile import UserError

# V between phase and neutral (IEC 60038), for PDUs that do not report their voltage.
NOMINAL_VOLTAGE = 230.0
_ROUNDING = 0.05  # A: half of the resolution of PDUs, so that a load of exactly the headroom fits


@dataclass(frozen=True)
class Circuit:
    """Circuit behind one breaker: a phase (the PDU's own feed) or a bank of outlets.

    ``current`` is the present current and ``breaker`` the maximum, in A; each is None if it is not reported.
    ``voltage`` is in V. ``phases`` are those of a bank: one, or two for a bank between two phases.
    """

    kind: str  # "phase" or "bank"
    number: int
    current: float | None
    breaker: float | None
    voltage: float | None = None
    phases: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Kind and number, for messages."""
        return "%s %d" % (self.kind, self.number)

    @property
    def volts(self) -> float:
        """Voltage for calculations."""
        return self.voltage or NOMINAL_VOLTAGE

    def headroom(self, share: float = 1.0) -> float | None:
        """Return the additional current in A, negative for an overload; None if it is unknown."""
        if self.current is None or self.breaker is None:
            return None
        return self.breaker * share - self.current

    def headroom_power(self, share: float = 1.0) -> float | None:
        """Return the headroom in kW, for a power factor of 1."""
        amperes = self.headroom(share)
        return None if amperes is None else amperes * self.volts / 1000


@dataclass(frozen=True)
class Load:
    """Additional load: ``power`` in kW on a bank or a phase; with neither, spread evenly."""

    power: float
    phase: int | None = None
    bank: int | None = None


@dataclass(frozen=True)
class Feed:
    """Circuits of a PDU. ``power`` (present) and ``rating`` of the whole PDU are in kW, None if not reported."""

    power: float | None
    rating: float | None
    circuits: tuple[Circuit, ...]

    def of(self, kind: str) -> list[Circuit]:
        """Return all phases, or all banks."""
        return [circuit for circuit in self.circuits if circuit.kind == kind]


@dataclass(frozen=True)
class Excess:
    """A limit that additional loads exceed; in A for a phase or a bank, in kW for the whole PDU."""

    kind: str  # "phase", "bank" or "device"
    number: int | None
    present: float
    added: float
    limit: float

    @property
    def message(self) -> str:
        """All numbers, as a clause of a message."""
        unit = "kW" if self.kind == "device" else "A"
        name = "the whole PDU" if self.kind == "device" else "%s %d" % (self.kind, self.number or 0)
        return "%s would carry %s %s of at most %s %s (%s now and %s more)" % (
            name,
            format_number(self.present + self.added),
            unit,
            format_number(self.limit),
            unit,
            format_number(self.present),
            format_number(self.added),
        )


def format_number(value: float) -> str:
    """Return a number with one decimal, or none if it is zero."""
    return ("%.1f" % value).removesuffix(".0")


def additional(feed: Feed, loads: t.Sequence[Load]) -> dict[tuple[str, int], float]:
    """Return the current in A that the loads add to each phase and each bank, by kind and number.

    A load without a place is spread evenly over the phases; a load on a phase, over the banks of that phase. A load
    between two phases counts fully in both, so it is never underestimated. Raises UserError for an unknown phase
    or bank.
    """
    added: dict[tuple[str, int], float] = {(circuit.kind, circuit.number): 0.0 for circuit in feed.circuits}
    phases, banks = feed.of("phase"), feed.of("bank")
    for load in loads:
        if load.power < 0:
            raise UserError("Cannot add a load of %s kW: it must not be negative." % format_number(load.power))
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
    existing = "it has %ss %d to %d" % (kind, circuits[0].number, circuits[-1].number) if circuits else "it has none"
    raise UserError("Cannot add a load to %s %d: the PDU does not have it; %s." % (kind, number, existing))


def _on_bank(added: dict[tuple[str, int], float], bank: Circuit, power: float) -> None:
    current = power * 1000 / bank.volts
    added["bank", bank.number] += current
    for phase in bank.phases:
        if ("phase", phase) in added:
            added["phase", phase] += current


def _on_phase(added: dict[tuple[str, int], float], phase: Circuit, banks: list[Circuit], power: float) -> None:
    # A bank between two phases belongs to the first of them.
    downstream = [bank for bank in banks if bank.phases[:1] == (phase.number,)]
    for bank in downstream:
        _on_bank(added, bank, power / len(downstream))
    if not downstream:
        added["phase", phase.number] += power * 1000 / phase.volts


def excesses(feed: Feed, loads: t.Sequence[Load], share: float = 1.0) -> list[Excess]:
    """Return the breakers that the loads bring above ``share`` of their rating.

    Breakers without additional load and breakers with unknown values are not checked. Raises UserError for an
    unknown phase or bank.
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
        headroom = circuit.headroom(share)
        if more > 0 and headroom is not None and more > headroom + _ROUNDING:
            found.append(
                Excess(circuit.kind, circuit.number, circuit.current or 0.0, more, (circuit.breaker or 0.0) * share)
            )
    return found


def remaining_load(feed: Feed, power: float) -> Load:
    """Return the load that is missing to a total of ``power`` in kW; zero if the present load is higher."""
    present = feed.power
    if present is None:
        present = sum((phase.current or 0.0) * phase.volts / 1000 for phase in feed.of("phase"))
    return Load(max(0.0, power - present))


def excess_message(name: str, loads: t.Sequence[Load], found: t.Sequence[Excess]) -> str:
    """Return the message that the loads exceed limits of the PDU of this name."""
    return "Cannot add %s kW to %s: %s. Reduce the load, or move it to another PDU." % (
        format_number(sum(load.power for load in loads)),
        name,
        "; ".join(excess.message for excess in found),
    )
