# SPDX-License-Identifier: GPL-3.0-or-later
"""Persistent state of a PDU: settings and counters. Pure, except for ``Store``."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from openipu.twin.devices.pdu.load import LoadState, Thresholds
from openipu.twin.devices.pdu.models import Model

RECEIVERS = 6  # maximum number of trap receivers
NO_ADDRESS = "0.0.0.0"  # noqa: S104 - of an unset trap receiver


@dataclass(slots=True)
class OutletSettings:
    """Settings of a switched outlet; delays are in s, and -1 is never."""

    name: str
    on_delay: int = 0
    off_delay: int = 0
    reboot_duration: int = 5
    link: str = ""


@dataclass(slots=True)
class Receiver:
    """Settings of a trap receiver."""

    address: str = NO_ADDRESS
    community: str = "public"
    enabled: bool = True


@dataclass(slots=True)
class Settings:
    """All writable settings. Only switched models have outlets."""

    name: str
    device: Thresholds
    phases: list[Thresholds]
    banks: list[Thresholds]
    outlets: list[OutletSettings]
    location: str = "Unknown"
    contact: str = "Unknown"
    module: int = 1
    orientation: int = 1
    coldstart_delay: int = 0
    receivers: list[Receiver] = field(default_factory=lambda: [Receiver() for _ in range(RECEIVERS)])

    @classmethod
    def of(cls, name: str, model: Model) -> Settings:
        """Return the factory settings of a model."""
        return cls(
            name,
            device=Thresholds.of(model.watts // 100),
            phases=[Thresholds.of(model.phase_amps, model.switched) for _ in range(model.phases)],
            banks=[Thresholds.of(model.bank_amps, model.switched) for _ in model.bank_phases],
            outlets=[OutletSettings(f"Outlet {outlet.number}") for outlet in model.outlets] if model.switched else [],
        )


@dataclass(slots=True)
class Peak:
    """Highest value since a time; times are in the format of the PDU."""

    value: int
    at: str
    since: str


@dataclass(slots=True)
class Record:
    """Persistent state: settings, counters, outlet states and the number of agent starts."""

    model: str
    settings: Settings
    on: list[bool]
    energy: float  # Wh
    energy_since: str
    device_peak: Peak
    phase_peaks: list[Peak]
    bank_peaks: list[Peak]
    boots: int = 0

    @classmethod
    def of(cls, name: str, model: Model, now: str) -> Record:
        """Return the state of a new PDU."""
        return cls(
            model.name,
            Settings.of(name, model),
            on=[True] * len(model.outlets),
            energy=0.0,
            energy_since=now,
            device_peak=Peak(0, now, now),
            phase_peaks=[Peak(0, now, now) for _ in range(model.phases)],
            bank_peaks=[Peak(0, now, now) for _ in model.bank_phases],
        )


class Store:
    """State file of a PDU in a folder; without a folder nothing is saved."""

    def __init__(self, folder: Path | None, name: str) -> None:
        """Create nothing yet; the first ``save`` creates the folder."""
        self._path = folder / f"{name}.json" if folder is not None else None

    @property
    def persistent(self) -> bool:
        """True if there is a folder to save to."""
        return self._path is not None

    def load(self, model: Model) -> Record | None:
        """Return the saved state, or None. Raises ValueError with a one-line message, and OSError."""
        if self._path is None or not self._path.exists():
            return None
        try:
            record = _record(json.loads(self._path.read_text("utf-8")))
        except (ValueError, TypeError, KeyError):
            raise ValueError(
                f"Cannot read {self._path}: it is not the state of a PDU. Remove it to reset the PDU."
            ) from None
        if record.model != model.name:
            raise ValueError(
                f"Cannot use {self._path} for an {model.name}: it is the state of an {record.model}. "
                "Remove it to reset the PDU."
            )
        return record

    def save(self, record: Record) -> None:
        """Write the state atomically. Raises OSError."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(record), file)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except BaseException:
            Path(name).unlink()
            raise


def _record(data: dict[str, Any]) -> Record:
    return Record(
        settings=_settings(data.pop("settings")),
        device_peak=Peak(**data.pop("device_peak")),
        phase_peaks=[Peak(**each) for each in data.pop("phase_peaks")],
        bank_peaks=[Peak(**each) for each in data.pop("bank_peaks")],
        **data,
    )


def _settings(data: dict[str, Any]) -> Settings:
    return Settings(
        device=_thresholds(data.pop("device")),
        phases=[_thresholds(each) for each in data.pop("phases")],
        banks=[_thresholds(each) for each in data.pop("banks")],
        outlets=[OutletSettings(**each) for each in data.pop("outlets")],
        receivers=[Receiver(**each) for each in data.pop("receivers")],
        **data,
    )


def _thresholds(data: dict[str, Any]) -> Thresholds:
    restriction = data.pop("restriction")
    return Thresholds(**data, restriction=None if restriction is None else LoadState(restriction))
