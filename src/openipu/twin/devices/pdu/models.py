# SPDX-License-Identifier: GPL-3.0-or-later
"""PDU models: phases, breakers and outlets of each. No I/O.

Ratings and numbers of outlets are APC's. The banks of outlets follow PowerNet-MIB (rPDU2DevicePropertiesOutletLayout).
The numbering of the AP8886's outlets is ours, since APC labels them by bank.

AP8886: a phase of 32 A needs two breakers of 16 A. rPDULoadDevNumBanks counts groups of outlets with their own breaker.
So it has six banks, as in the layout seqPhToN2xGrouped. Operators describe the same: two banks of 16 A on each phase.
NetBox's library of device types lists three banks of 14 outlets (10 C13, 4 C19), which are the phases. Three breakers
of 16 A carry half of the rated 22 kW.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

VOLTAGE = 230  # V, from phase to neutral


@dataclass(frozen=True, slots=True)
class Outlet:
    """One outlet; bank 0 means no bank."""

    number: int
    kind: str  # C13 or C19
    phase: int
    bank: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """Hardware of a PDU model.

    ``bank_phases`` has the phase of each bank, in order; a model without breakers has no banks. Currents are in A,
    the power is in W. ``layout`` is the value of rPDU2DevicePropertiesOutletLayout.
    """

    name: str
    description: str
    phases: int
    phase_amps: int
    watts: int
    bank_phases: tuple[int, ...]
    outlets: tuple[Outlet, ...]
    layout: str
    switched: bool = False
    bank_amps: int = 16

    def balanced(self) -> list[int]:
        """Return the numbers of all outlets in an order that loads phases, and the banks of each, evenly.

        This is how a rack with devices of equal power is wired, so that no breaker is loaded more than another one.
        """
        used: Counter[tuple[int, int]] = Counter()
        places = []
        for outlet in self.outlets:
            banks = [number for number, phase in enumerate(self.bank_phases, 1) if phase == outlet.phase]
            bank = banks.index(outlet.bank) if outlet.bank else 0
            places.append((used[outlet.phase, bank], bank, outlet.phase, outlet.number))
            used[outlet.phase, bank] += 1
        return [number for *_place, number in sorted(places)]


def _groups(size: int, c19: frozenset[int], *wiring: tuple[int, int]) -> tuple[Outlet, ...]:
    """Return outlets in groups of this size, each with a phase and bank; the numbers in ``c19`` are C19 outlets."""
    return tuple(
        Outlet(number, "C19" if number in c19 else "C13", phase, bank)
        for group, (phase, bank) in enumerate(wiring)
        for number in range(group * size + 1, (group + 1) * size + 1)
    )


_BANKS_OF_SEVEN = frozenset(number for number in range(1, 43) if number % 7 in (6, 0))  # the last two of each
_EVERY_EIGHTH = frozenset((8, 16, 24))

MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model(
            "AP8886",
            "Rack PDU 2G, Metered, ZeroU, 22.0kW(32A), 230V, (30) C13 & (12) C19",
            phases=3,
            phase_amps=32,
            watts=22000,
            bank_phases=(1, 1, 2, 2, 3, 3),
            outlets=_groups(7, _BANKS_OF_SEVEN, (1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (3, 6)),
            layout="seqPhToN2xGrouped",
        ),
        Model(
            "AP8953",
            "Rack PDU 2G, Switched, ZeroU, 7.4kW(32A), 230V, (21) C13 & (3) C19",
            phases=1,
            phase_amps=32,
            watts=7400,
            bank_phases=(1, 1),
            outlets=_groups(12, _EVERY_EIGHTH, (1, 1), (1, 2)),
            layout="seqPhaseToNeutral",
            switched=True,
        ),
        Model(
            "AP8981",
            "Rack PDU 2G, Switched, ZeroU, 11.0kW(16A), 230V, (21) C13 & (3) C19",
            phases=3,
            phase_amps=16,
            watts=11000,
            bank_phases=(),
            outlets=_groups(8, _EVERY_EIGHTH, (1, 0), (2, 0), (3, 0)),
            layout="seqPhToNGrouped",
            switched=True,
        ),
    )
}


def find_model(model: str, pdu: str) -> Model:
    """Return the model of this name, for a PDU. Raises ValueError with a one-line message for an unknown model."""
    if model not in MODELS:
        raise ValueError(
            f"Cannot create PDU {pdu!r}: the twin does not support model {model!r}. Choose from {', '.join(MODELS)}."
        )
    return MODELS[model]
