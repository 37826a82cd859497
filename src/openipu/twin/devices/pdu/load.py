# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads of a PDU, and their states by thresholds. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from openipu.twin.devices.pdu.models import VOLTAGE, Model

POWER_FACTOR = 0.98  # of a load of server power supplies


class Loads(Protocol):
    """Source of the present loads at the outlets."""

    def __call__(self) -> Mapping[int, float]:
        """Return the W that each outlet delivers now while it is on; an omitted outlet delivers none."""


class LoadState(enum.IntEnum):
    """Load states, numbered as in PowerNet-MIB."""

    LOW = 1
    NORMAL = 2
    NEAR_OVERLOAD = 3
    OVERLOAD = 4


@dataclass(slots=True)
class Thresholds:
    """Thresholds of the load states, and the restriction on turning on outlets.

    Thresholds of a phase or bank are in A, those of a device in tenths of kW. From the load state ``restriction`` on,
    no outlet can be turned on. LOW never restricts; None is for models without this setting.
    """

    low: int
    near: int
    over: int
    restriction: LoadState | None = None

    @classmethod
    def of(cls, rating: int, switched: bool = False) -> Thresholds:
        """Return the factory settings for a rating: 0, 80 % and 100 % of it."""
        return cls(0, round(rating * 0.8), rating, LoadState.LOW if switched else None)

    def state(self, value: float) -> LoadState:
        """Return the state of a load, in the unit of the thresholds: bounds as in rPDULoadStatusLoadState."""
        if value >= self.over:
            return LoadState.OVERLOAD
        if value >= self.near:
            return LoadState.NEAR_OVERLOAD
        return LoadState.LOW if value < self.low else LoadState.NORMAL


@dataclass(frozen=True, slots=True)
class Reading:
    """Power of a device, and of each of its phases and banks, in W."""

    device: float
    phases: tuple[float, ...]
    banks: tuple[float, ...]


def measure(model: Model, watts: Mapping[int, float]) -> Reading:
    """Return the loads of a PDU for the W of its outlets."""
    phases = [0.0] * model.phases
    banks = [0.0] * len(model.bank_phases)
    for outlet in model.outlets:
        drawn = watts.get(outlet.number, 0.0)
        phases[outlet.phase - 1] += drawn
        if outlet.bank:
            banks[outlet.bank - 1] += drawn
    return Reading(sum(phases), tuple(phases), tuple(banks))


def tenths_of_amps(watts: float) -> int:
    """Return the current of a load in tenths of A, as in the MIB."""
    return round(watts / POWER_FACTOR / VOLTAGE * 10)


def hundredths_of_kilo(watts: float) -> int:
    """Return a power in hundredths of kW, as in the MIB."""
    return round(watts / 10)
