# SPDX-License-Identifier: GPL-3.0-or-later
"""One PDU: what it is, what it is set to, what it carries, and which of its outlets are on."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import structlog

from openipu.twin.pdu.load import Loads, LoadState, Reading, Thresholds, hundredths_of_kilo, measure, tenths_of_amps
from openipu.twin.pdu.models import MODELS, Outlet
from openipu.twin.pdu.outlets import Clock, LoopClock, Switching, steps, steps_of_all
from openipu.twin.pdu.settings import Peak, Record, Settings, Store
from openipu.twin.pdu.users import Credentials

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin.pdu")


@dataclass
class Faults:
    """What is wrong with a PDU: seconds by which each answer is late, whether it drops every request, and whether
    it knows none of the keys and communities that it should."""

    slow: float = 0.0
    refusing: bool = False
    wrong_credentials: bool = False


@dataclass(frozen=True, slots=True)
class Alarm:
    """A load came into a state that is not normal, or left it. ``place`` is device, phase or bank."""

    place: str
    number: int
    state: LoadState
    active: bool


@dataclass(slots=True)
class Draft:
    """A change that is being put together: settings, and what is to be done once they are kept."""

    settings: Settings
    todo: list[Callable[[], None]] = field(default_factory=list)


def _nothing() -> dict[int, float]:
    return {}


def _ignore(outlet: int, on: bool) -> None:
    """For a rack that does not mind."""


class Pdu:
    """A PDU.

    Its meters are as old as the last ``sample``: the agent takes one before each answer and once a second. Whoever
    changes the loads may call it too, so that the energy is exact. All of it belongs to one event loop.
    """

    def __init__(
        self,
        name: str,
        model: str = "AP8886",
        loads: Loads = _nothing,
        credentials: Credentials | None = None,
        folder: Path | None = None,
        clock: Clock | None = None,
        on_outlet: Callable[[int, bool], None] = _ignore,
        serial: str = "",
    ) -> None:
        """Settings and counters are those in ``folder``, where they are kept; without one they end with the object.

        ``on_outlet`` is called after an outlet went on or off. ``clock`` is the running event loop unless given.
        Raises ValueError with a sentence for an unknown model and for a file that is not of this PDU; OSError.
        """
        if model not in MODELS:
            raise ValueError(f"There is no PDU model {model!r} in the twin: choose from {', '.join(MODELS)}.")
        self.name = name
        self.model = MODELS[model]
        self.credentials = credentials or Credentials()
        self.serial = serial or f"ZA{int(hashlib.sha256(name.encode()).hexdigest(), 16) % 10**10:010d}"
        self.faults = Faults()
        self.listeners: list[Callable[[Alarm], None]] = []  # told of every alarm
        self._loads = loads
        self._on_outlet = on_outlet
        self._clock = clock or LoopClock()
        self._started = self._sampled = self._clock.time()
        self._store = Store(folder, name)
        self._record = self._store.load(self.model) or Record.of(name, self.model, _now())
        self._reading = measure(self.model, {})
        self._states: dict[tuple[str, int], LoadState] = {}
        self.switching = Switching(self._clock, self._switch)
        self._measure()  # nobody listens yet to what that means

    # What it is set to.

    @property
    def settings(self) -> Settings:
        """As they are; they change by ``commit`` only."""
        return self._record.settings

    def draft(self) -> Draft:
        """The beginning of a change."""
        return Draft(copy.deepcopy(self.settings))

    def commit(self, draft: Draft) -> None:
        """Make it so. Raises OSError when it cannot be kept, and then nothing has changed."""
        self.sample()
        before, self._record.settings = self._record.settings, draft.settings
        try:
            self._store.save(self._record)
        except OSError:
            self._record.settings = before
            raise
        for do in draft.todo:
            do()
        self.sample()

    # What it measures.

    @property
    def record(self) -> Record:
        """Counters and settings, to be read."""
        return self._record

    @property
    def reading(self) -> Reading:
        """The loads of the last sample."""
        return self._reading

    @property
    def uptime(self) -> float:
        """Seconds since the start."""
        return self._clock.time() - self._started

    def sample(self) -> None:
        """Count the energy since the last sample, look at the loads, and tell of what became of them."""
        now = self._clock.time()
        self._record.energy += self._reading.device * max(0.0, now - self._sampled) / 3600
        self._sampled = now
        self._measure()
        self._look_for_alarms()

    def state(self, place: str, number: int = 1) -> LoadState:
        """The load state of the device, a phase or a bank."""
        reading, settings = self._reading, self.settings
        if place == "device":
            return settings.device.state(hundredths_of_kilo(reading.device) / 10)
        watts, thresholds = (reading.phases, settings.phases) if place == "phase" else (reading.banks, settings.banks)
        return thresholds[number - 1].state(tenths_of_amps(watts[number - 1]) / 10)

    def reset(self, peak: Peak) -> None:
        """Let a peak begin anew, from what it is now."""
        value = next(value for each, value in self._measured() if each is peak)
        peak.value, peak.at, peak.since = value, _now(), _now()

    def reset_energy(self) -> None:
        """Count from 0."""
        self._record.energy, self._record.energy_since = 0.0, _now()

    def _measure(self) -> None:
        self._reading = measure(self.model, {o: w for o, w in self._loads().items() if self.is_on(o)})
        for peak, value in self._measured():
            if value > peak.value:
                peak.value, peak.at = value, _now()

    def _measured(self) -> list[tuple[Peak, int]]:
        record, reading = self._record, self._reading
        amps = (*reading.phases, *reading.banks)
        return [
            (record.device_peak, hundredths_of_kilo(reading.device)),
            *zip((*record.phase_peaks, *record.bank_peaks), map(tenths_of_amps, amps), strict=True),
        ]

    def _look_for_alarms(self) -> None:
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
                    self._tell(Alarm(place, number, state, active))

    def _tell(self, alarm: Alarm) -> None:
        for listener in self.listeners:
            listener(alarm)

    # Its outlets.

    def is_on(self, outlet: int) -> bool:
        """Whether there is an outlet of this number, and it gives power."""
        return 1 <= outlet <= len(self._record.on) and self._record.on[outlet - 1]

    def command(self, outlet: int, command: str) -> None:
        """Do what a value of rPDU2OutletSwitchedControlCommand says, given by name."""
        self.switching.start(outlet, steps(command, self.settings.outlets[outlet - 1]))

    def command_all(self, command: str) -> None:
        """Do what a value of rPDU2DeviceControlCommand says, given by name."""
        if command == "cancelAllPendingCommands":
            self.switching.cancel_all()
        elif command != "noCommandAll":
            for outlet, todo in enumerate(steps_of_all(command, self.settings.outlets), 1):
                self.switching.start(outlet, todo)

    def may_turn_on(self, outlet: Outlet) -> bool:
        """Whether the loads of its phase and bank allow it, by their restrictions."""
        places = [("phase", outlet.phase, self.settings.phases)]
        if outlet.bank:
            places.append(("bank", outlet.bank, self.settings.banks))
        return not any(self._restricts(rows[number - 1], self.state(place, number)) for place, number, rows in places)

    @staticmethod
    def _restricts(thresholds: Thresholds, state: LoadState) -> bool:
        limit = thresholds.restriction or LoadState.LOW
        return limit > LoadState.LOW and state >= limit

    def _switch(self, outlet: int, on: bool) -> None:
        if self.is_on(outlet) == on:
            return
        self.sample()
        if on and not self.may_turn_on(self.model.outlets[outlet - 1]):
            _log.info("stays off, by its overload restriction", pdu=self.name, outlet=outlet)
            return
        self._record.on[outlet - 1] = on
        self.keep()
        self._on_outlet(outlet, on)
        self.sample()

    # How it starts and ends.

    @property
    def remembers(self) -> bool:
        """Whether it will know after a restart what it knows now."""
        return self._store.keeps

    def count_boot(self) -> int:
        """How often its agent has started, with this time; engines of SNMPv3 count it. Raises OSError."""
        self._record.boots += 1
        self._store.save(self._record)
        return self._record.boots

    def keep(self) -> None:
        """Write counters down; that they could not be is in the log only, since nobody waits for it."""
        try:
            self._store.save(self._record)
        except OSError as error:
            _log.warning("state not kept", pdu=self.name, error=str(error))

    def close(self) -> None:
        """End what was to come, and keep the counters."""
        self.switching.cancel_all()
        self.sample()
        self.keep()


def _now() -> str:
    return datetime.now().strftime("%m/%d/%Y %H:%M:%S")
