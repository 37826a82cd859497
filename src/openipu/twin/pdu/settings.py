# SPDX-License-Identifier: GPL-3.0-or-later
"""What people set on a PDU, and what it counts: all that a restart keeps. Pure, but for ``Store``."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from openipu.twin.pdu.load import LoadState, Thresholds
from openipu.twin.pdu.models import Model

RECEIVERS = 6  # trap receivers that there is room for
NO_ADDRESS = "0.0.0.0"  # noqa: S104 - of a trap receiver that is not set


@dataclass(slots=True)
class OutletSettings:
    """Of a switched outlet; delays are in s, and -1 is never."""

    name: str
    on_delay: int = 0
    off_delay: int = 0
    reboot_duration: int = 5
    link: str = ""


@dataclass(slots=True)
class Receiver:
    """Of traps."""

    address: str = NO_ADDRESS
    community: str = "public"
    enabled: bool = True


@dataclass(slots=True)
class Settings:
    """All that can be written. Outlets are there on switched models only."""

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
        """As they come from the factory."""
        return cls(
            name,
            device=Thresholds.of(model.watts // 100),
            phases=[Thresholds.of(model.phase_amps, model.switched) for _ in range(model.phases)],
            banks=[Thresholds.of(model.bank_amps, model.switched) for _ in model.bank_phases],
            outlets=[OutletSettings(f"Outlet {outlet.number}") for outlet in model.outlets] if model.switched else [],
        )


@dataclass(slots=True)
class Peak:
    """The highest value since a time; times are as the PDU writes them."""

    value: int
    at: str
    since: str


@dataclass(slots=True)
class Record:
    """What a PDU keeps: settings, counters, outlets that are on, how often its agent started."""

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
        """Of a PDU that is new."""
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
    """The file of a PDU in a folder; without a folder nothing is kept."""

    def __init__(self, folder: Path | None, name: str) -> None:
        """The folder is made with the first ``save``."""
        self._path = folder / f"{name}.json" if folder is not None else None

    @property
    def keeps(self) -> bool:
        """Whether anything is kept."""
        return self._path is not None

    def load(self, model: Model) -> Record | None:
        """What was saved, if anything was. Raises ValueError with a sentence, and OSError."""
        if self._path is None or not self._path.exists():
            return None
        try:
            record = _record(json.loads(self._path.read_text("utf-8")))
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{self._path} is not the state of a PDU: remove it to begin anew.") from None
        if record.model != model.name:
            raise ValueError(f"{self._path} is of an {record.model}, not of an {model.name}: remove it to begin anew.")
        return record

    def save(self, record: Record) -> None:
        """Keep it, whole or not at all. Raises OSError."""
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
