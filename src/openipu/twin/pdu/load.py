# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PDU carries, and whether that is much. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from openipu.twin.pdu.models import VOLTAGE, Model

POWER_FACTOR = 0.98  # of a load of server power supplies


class Loads(Protocol):
    """What is plugged in."""

    def __call__(self) -> Mapping[int, float]:
        """The W that each outlet would draw now, were it on; those that are left out draw none."""


class LoadState(enum.IntEnum):
    """As PowerNet-MIB numbers them."""

    LOW = 1
    NORMAL = 2
    NEAR_OVERLOAD = 3
    OVERLOAD = 4


@dataclass(slots=True)
class Thresholds:
    """When a load is low, near overload, and overload; and whether outlets may then still be turned on.

    Those of a phase or bank are in A, those of a device in tenths of kW. ``restriction`` is the load state from
    which on no outlet is turned on; None for models that have no such setting, LOW to allow it always.
    """

    low: int
    near: int
    over: int
    restriction: LoadState | None = None

    @classmethod
    def of(cls, rating: int, switched: bool = False) -> Thresholds:
        """As they come from the factory for something that may carry so much: 0, 80 % and all of it."""
        return cls(0, round(rating * 0.8), rating, LoadState.LOW if switched else None)

    def state(self, value: float) -> LoadState:
        """The state of a load that measures this much, in the unit of the thresholds."""
        if value > self.over:
            return LoadState.OVERLOAD
        if value > self.near:
            return LoadState.NEAR_OVERLOAD
        return LoadState.LOW if value < self.low else LoadState.NORMAL


@dataclass(frozen=True, slots=True)
class Reading:
    """W of a device, and of each of its phases and banks."""

    device: float
    phases: tuple[float, ...]
    banks: tuple[float, ...]


def measure(model: Model, watts: Mapping[int, float]) -> Reading:
    """What outlets that draw so many W make of a PDU."""
    phases = [0.0] * model.phases
    banks = [0.0] * len(model.bank_phases)
    for outlet in model.outlets:
        drawn = watts.get(outlet.number, 0.0)
        phases[outlet.phase - 1] += drawn
        if outlet.bank:
            banks[outlet.bank - 1] += drawn
    return Reading(sum(phases), tuple(phases), tuple(banks))


def tenths_of_amps(watts: float) -> int:
    """The current of a load, as the MIB has it."""
    return round(watts / POWER_FACTOR / VOLTAGE * 10)


def hundredths_of_kilo(watts: float) -> int:
    """A power, as the MIB has it."""
    return round(watts / 10)
