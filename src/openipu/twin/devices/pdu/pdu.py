# SPDX-License-Identifier: GPL-3.0-or-later
"""State of one PDU: model, settings, loads and alarms."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import structlog

from openipu.twin.devices.pdu.load import (
    Loads,
    LoadState,
    Reading,
    hundredths_of_kilo,
    measure,
    tenths_of_amps,
)
from openipu.twin.devices.pdu.models import find_model
from openipu.twin.devices.pdu.outlet_timing import Clock, LoopClock
from openipu.twin.devices.pdu.outlets import Outlets
from openipu.twin.devices.pdu.settings import Peak, Record, Settings, Store
from openipu.twin.devices.snmp.traffic import Traffic
from openipu.twin.devices.snmp.users import Credentials

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin.pdu")


@dataclass
class PduFaults:
    """Injected faults of a PDU."""

    slow: float = 0.0  # s, added to each response
    rejecting: bool = False  # drop every request
    wrong_credentials: bool = False  # reject all configured keys and communities


@dataclass(frozen=True, slots=True)
class Alarm:
    """Start or end of an abnormal load state. ``place`` is device, phase or bank."""

    place: str
    number: int
    state: LoadState
    active: bool


@dataclass(slots=True)
class Draft:
    """An uncommitted change: settings, and actions to run once the settings are saved."""

    settings: Settings
    actions: list[Callable[[], None]] = field(default_factory=list)


def _no_loads() -> dict[int, float]:
    return {}


def _ignore(outlet: int, on: bool) -> None:
    """Ignore a switched outlet."""


class Pdu:
    """A PDU. All of its methods run in one event loop.

    Its meters show the last ``sample``: the agent takes one before each response and once a second. Call ``sample``
    at a change of the loads to keep the energy exact.
    """

    def __init__(
        self,
        name: str,
        model: str = "AP8886",
        loads: Loads = _no_loads,
        credentials: Credentials | None = None,
        folder: Path | None = None,
        clock: Clock | None = None,
        on_outlet: Callable[[int, bool], None] = _ignore,
        serial: str = "",
    ) -> None:
        """Load settings and counters from ``folder``; without a folder nothing is persistent.

        ``on_outlet`` is called after an outlet went on or off. ``clock`` defaults to the running event loop.
        Raises ValueError with a one-line message for an unknown model and for a file of another PDU; OSError.
        """
        self.name = name
        self.model = find_model(model, name)
        self.credentials = credentials or Credentials()
        self.serial = serial or f"ZA{int(hashlib.sha256(name.encode()).hexdigest(), 16) % 10**10:010d}"
        self.faults = PduFaults()
        self.traffic = Traffic()
        self.listeners: list[Callable[[Alarm], None]] = []  # called with every alarm
        self._loads = loads
        self._clock = clock or LoopClock()
        self._started = self._sampled = self._clock.time()
        self._store = Store(folder, name)
        self._record = self._store.load(self.model) or Record.of(name, self.model, _now())
        self._reading = measure(self.model, {})
        self._states: dict[tuple[str, int], LoadState] = {}
        self.outlets = Outlets(self, self._clock, on_outlet)
        self._measure()  # no alarms: nothing listens yet

    # Settings

    @property
    def settings(self) -> Settings:
        """Current settings; only ``commit`` changes them."""
        return self._record.settings

    def draft(self) -> Draft:
        """Return a draft with the current settings."""
        return Draft(copy.deepcopy(self.settings))

    def commit(self, draft: Draft) -> None:
        """Save and apply a draft. Raises OSError, with nothing changed, if it cannot be saved."""
        self.sample()
        before, self._record.settings = self._record.settings, draft.settings
        try:
            self._store.save(self._record)
        except OSError:
            self._record.settings = before
            raise
        for action in draft.actions:
            action()
        self.sample()

    # Measurement

    @property
    def record(self) -> Record:
        """Counters, settings and outlet states; agents only read them."""
        return self._record

    @property
    def reading(self) -> Reading:
        """Loads of the last sample."""
        return self._reading

    @property
    def uptime(self) -> float:
        """Seconds since the agent started."""
        return self._clock.time() - self._started

    def sample(self) -> None:
        """Count the energy since the last sample, measure the loads, and report alarms."""
        now = self._clock.time()
        self._record.energy += self._reading.device * max(0.0, now - self._sampled) / 3600
        self._sampled = now
        self._measure()
        self._check_alarms()

    def state(self, place: str, number: int = 1) -> LoadState:
        """Return the load state of the device, a phase or a bank."""
        reading, settings = self._reading, self.settings
        if place == "device":
            return settings.device.state(hundredths_of_kilo(reading.device) / 10)
        watts, thresholds = (reading.phases, settings.phases) if place == "phase" else (reading.banks, settings.banks)
        return thresholds[number - 1].state(tenths_of_amps(watts[number - 1]) / 10)

    def reset(self, peak: Peak) -> None:
        """Reset a peak to the present value."""
        value = next(value for each, value in self._peak_values() if each is peak)
        peak.value, peak.at, peak.since = value, _now(), _now()

    def reset_energy(self) -> None:
        """Reset the energy counter to 0."""
        self._record.energy, self._record.energy_since = 0.0, _now()

    def _measure(self) -> None:
        self._reading = measure(self.model, {o: w for o, w in self._loads().items() if self.outlets.is_on(o)})
        for peak, value in self._peak_values():
            if value > peak.value:
                peak.value, peak.at = value, _now()

    def _peak_values(self) -> list[tuple[Peak, int]]:
        record, reading = self._record, self._reading
        amps = (*reading.phases, *reading.banks)
        return [
            (record.device_peak, hundredths_of_kilo(reading.device)),
            *zip((*record.phase_peaks, *record.bank_peaks), map(tenths_of_amps, amps), strict=True),
        ]

    def _check_alarms(self) -> None:
        places = [("device", 1)]
        places += [("phase", number) for number in range(1, self.model.phases + 1)]
        places += [("bank", number) for number in range(1, len(self.model.bank_phases) + 1)]
        for place, number in places:
            before, now = self._states.get((place, number), LoadState.NORMAL), self.state(place, number)
            self._states[place, number] = now
            if before == now:
                continue
            for state, active in ((before, False), (now, True)):
                if state != LoadState.NORMAL:
                    self._report(Alarm(place, number, state, active))

    def _report(self, alarm: Alarm) -> None:
        for listener in self.listeners:
            listener(alarm)

    # Persistence

    @property
    def persistent(self) -> bool:
        """True if its state survives a restart."""
        return self._store.persistent

    def count_boot(self) -> int:
        """Count a start of its agent, for SNMPv3, and return the number of starts. Raises OSError."""
        self._record.boots += 1
        self._store.save(self._record)
        return self._record.boots

    def save(self) -> None:
        """Save counters; only log a failure, since no request depends on it."""
        try:
            self._store.save(self._record)
        except OSError as error:
            _log.warning("state not saved", pdu=self.name, error=str(error))

    def close(self) -> None:
        """Drop pending steps, and save the counters."""
        self.outlets.cancel_all()
        self.sample()
        self.save()


def _now() -> str:
    return datetime.now().strftime("%m/%d/%Y %H:%M:%S")
