# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of the legacy rPDU tree. They show and change the same state as the rPDU2 tables."""

from __future__ import annotations

from collections.abc import Iterator

from openipu.shared.pdu.smi import Column
from openipu.twin.devices.pdu import legacy_mib as mib
from openipu.twin.devices.pdu.identity import DATE, FIRMWARE, HARDWARE
from openipu.twin.devices.pdu.legacy_outlet_objects import outlet_counts, switched
from openipu.twin.devices.pdu.load import POWER_FACTOR, LoadState, tenths_of_amps
from openipu.twin.devices.pdu.pdu import Pdu
from openipu.twin.devices.pdu.setting_objects import setting, thresholds
from openipu.twin.devices.snmp.objects import Variable, fixed

_NOT_SUPPORTED = -1  # rPDUIdentDeviceLinetoLineVoltage is for first-generation PDUs only

# Load states and alarms have the same numbers in the legacy tables.
_STATES = {LoadState.NORMAL: 1, LoadState.LOW: 2, LoadState.NEAR_OVERLOAD: 3, LoadState.OVERLOAD: 4}


def legacy(pdu: Pdu) -> Iterator[Variable]:
    """Yield all objects of the legacy tree."""
    yield from _identity(pdu)
    yield from _load_device(pdu)
    phases, banks = pdu.model.phases, len(pdu.model.bank_phases)
    for number in range(1, phases + 1):
        yield from _phase(pdu, number)
        yield from _load(pdu, "phase", number, row=number)
    for number in range(1, banks + 1):
        yield from _bank(pdu, number)
        yield from _load(pdu, "bank", number, row=phases + number)
    yield from outlet_counts(pdu)
    if pdu.model.switched:
        yield from switched(pdu)
    for name, text in (
        ("1Status", "powerSupplyOneOk"),
        ("2Status", "powerSupplyTwoNotPresent"),
        ("Alarm", "allAvailablePowerSuppliesOK"),
    ):
        column = mib.POWER_SUPPLY[name]
        yield fixed(column, column.names[text])
    for name, count in (("BankTableSize", banks), ("PhaseTableSize", phases), ("OutletTableSize", 0)):
        yield fixed(mib.STATUS_SIZES[name], count)


def _identity(pdu: Pdu) -> Iterator[Variable]:
    ident, model = mib.IDENT, pdu.model
    yield setting(pdu, ident["Name"], "name")
    yield setting(pdu, ident["DeviceDisplayOrientation"], "orientation")
    for name, value in (
        ("HardwareRev", HARDWARE),
        ("FirmwareRev", FIRMWARE),
        ("DateOfManufacture", DATE),
        ("ModelNumber", model.name),
        ("SerialNumber", pdu.serial),
        ("DeviceRating", model.phase_amps),
        ("DeviceNumOutlets", len(model.outlets)),
        ("DeviceNumPhases", model.phases),
        ("DeviceNumBreakers", len(model.bank_phases)),
        ("DeviceBreakerRating", model.bank_amps if model.bank_phases else 0),
        ("DeviceOrientation", ident["DeviceOrientation"].names["orientVertical"]),
        ("DeviceOutletLayout", ident["DeviceOutletLayout"].names[model.layout]),
        ("DeviceLinetoLineVoltage", _NOT_SUPPORTED),
        ("DevicePowerFactor", round(POWER_FACTOR * 1000)),
        ("DeviceLinetoNeutralVoltage", 0),  # fixed at 0, except for one first-generation PDU
    ):
        yield fixed(ident[name], value)
    yield Variable(ident["DevicePowerWatts"], 0, lambda: round(pdu.reading.device))
    yield Variable(ident["DevicePowerVA"], 0, lambda: round(pdu.reading.device / POWER_FACTOR))


def _load_device(pdu: Pdu) -> Iterator[Variable]:
    device, model = mib.LOAD_DEVICE, pdu.model
    banks = len(model.bank_phases)
    for name, value in (
        ("MaxPhaseLoad", 0 if banks else model.phase_amps),  # 0 on a PDU with banks
        ("NumPhases", model.phases),
        ("MaxBankLoad", model.bank_amps if banks else 0),
        ("NumBanks", banks),
        ("BankTableSize", banks),
        ("MaxOutletTableSize", 0),
    ):
        yield fixed(device[name], value)


def _phase(pdu: Pdu, number: int) -> Iterator[Variable]:
    config, status = mib.LOAD_PHASE_CONFIG, mib.STATUS_PHASE
    yield fixed(config["Index"], number, number)
    yield from thresholds(
        pdu, config, "Threshold", number, lambda settings: settings.phases[number - 1], pdu.model.phase_amps
    )
    yield _state(pdu, config["Alarm"], "phase", number, number)
    yield fixed(status["Index"], number, number)
    yield fixed(status["Number"], number, number)
    yield _state(pdu, status["State"], "phase", number, number)


def _bank(pdu: Pdu, number: int) -> Iterator[Variable]:
    config, status, ratings = mib.LOAD_BANK_CONFIG, mib.STATUS_BANK, mib.LOAD_BANKS
    yield fixed(config["Index"], number, number)
    yield from thresholds(
        pdu, config, "Threshold", number, lambda settings: settings.banks[number - 1], pdu.model.bank_amps
    )
    yield _state(pdu, config["Alarm"], "bank", number, number)
    for table in (status, ratings):
        yield fixed(table["Index"], number, number)
        yield fixed(table["Number"], number, number)
    yield fixed(ratings["MaxLoad"], pdu.model.bank_amps, number)
    yield _state(pdu, status["State"], "bank", number, number)


def _load(pdu: Pdu, place: str, number: int, row: int) -> Iterator[Variable]:
    """Yield a row of rPDULoadStatusTable: its phase number is 0 for a bank, and vice versa."""
    status = mib.LOAD_STATUS

    def watts() -> float:
        reading = pdu.reading
        return (reading.phases if place == "phase" else reading.banks)[number - 1]

    yield fixed(status["Index"], row, row)
    yield Variable(status["Load"], row, lambda: tenths_of_amps(watts()))
    yield _state(pdu, status["LoadState"], place, number, row)
    yield fixed(status["PhaseNumber"], number if place == "phase" else 0, row)
    yield fixed(status["BankNumber"], number if place == "bank" else 0, row)


def _state(pdu: Pdu, column: Column, place: str, number: int, row: int) -> Variable:
    return Variable(column, row, lambda: _STATES[pdu.state(place, number)])
