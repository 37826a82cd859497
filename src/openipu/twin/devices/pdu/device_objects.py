# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of a PDU, of its phases and banks, and of its trap receivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Column, Table
from openipu.twin.devices.pdu.identity import BOOT_MONITOR, DATE, FIRMWARE, HARDWARE
from openipu.twin.devices.pdu.interface_objects import interfaces
from openipu.twin.devices.pdu.legacy_mib import EMPTY_TABLE_SIZES
from openipu.twin.devices.pdu.legacy_objects import legacy
from openipu.twin.devices.pdu.load import POWER_FACTOR, hundredths_of_kilo, tenths_of_amps
from openipu.twin.devices.pdu.models import VOLTAGE
from openipu.twin.devices.pdu.outlet_objects import switched
from openipu.twin.devices.pdu.pdu import Draft, Pdu
from openipu.twin.devices.pdu.setting_objects import setting, thresholds
from openipu.twin.devices.pdu.settings import Peak, Receiver, Settings
from openipu.twin.devices.pdu.shared_objects import shared_variables
from openipu.twin.devices.snmp.errors import SnmpError, Status
from openipu.twin.devices.snmp.objects import Variable, fixed

MODULES = 4  # maximum number of PDUs behind one agent, so the highest module number


def variables(pdu: Pdu) -> Iterator[Variable]:
    """Yield all objects of a PDU."""
    yield from _system(pdu)
    yield from _device(pdu)
    for number in range(1, pdu.model.phases + 1):
        yield from _phase(pdu, number)
    for number in range(1, len(pdu.model.bank_phases) + 1):
        yield from _bank(pdu, number)
    if pdu.model.switched:
        yield from switched(pdu)
    for row in range(1, len(pdu.settings.receivers) + 1):
        yield from _receiver(pdu, row)
    yield from interfaces(pdu)
    yield from legacy(pdu)


def _system(pdu: Pdu) -> Iterator[Variable]:
    group, model = mib.SYSTEM_GROUP, pdu.model
    yield fixed(
        group["Descr"],
        f"APC Web/SNMP Management Card (MB:v4.1.0 PF:{FIRMWARE} PN:apc_hw05_aos_696.bin AF1:{FIRMWARE} "
        f"AN1:apc_hw05_rpdu2g_696.bin MN:{model.name} HR:{HARDWARE} SN: {pdu.serial} MD:{DATE})",
    )
    yield fixed(group["ObjectID"], mib.RPDU2_OBJECT_ID)
    yield Variable(group["UpTime"], 0, lambda: int(pdu.uptime * 100) % 2**32)
    yield setting(pdu, group["Contact"], "contact")
    yield setting(pdu, group["Name"], "name")
    yield setting(pdu, group["Location"], "location")
    yield fixed(group["Services"], 72)
    for name, count in (
        ("IdentTableSize", 1),
        ("DeviceTableSize", 1),
        ("PhaseTableSize", model.phases),
        ("BankTableSize", len(model.bank_phases)),
        ("OutletSwitchedTableSize", len(model.outlets) if model.switched else 0),
    ):
        yield fixed(mib.TABLE_SIZES[name], count)
    for column in EMPTY_TABLE_SIZES.values():
        yield fixed(column, 0)
    yield fixed(mib.TRAP_RECEIVER_COUNT, len(pdu.settings.receivers))


def _device(pdu: Pdu) -> Iterator[Variable]:
    yield from _identity(pdu)
    yield from _device_config(pdu)
    yield from _device_properties(pdu)
    yield from _device_status(pdu)


def _identity(pdu: Pdu) -> Iterator[Variable]:
    ident = mib.IDENT
    yield from shared_variables(pdu, ident)
    yield Variable(ident["Name"], 1, lambda: pdu.settings.name)
    yield Variable(ident["Location"], 1, lambda: pdu.settings.location)
    yield Variable(ident["Contact"], 1, lambda: pdu.settings.contact)
    for name, value in (
        ("HardwareRev", HARDWARE),
        ("FirmwareRev", FIRMWARE),
        ("DateOfManufacture", DATE),
        ("ModelNumber", pdu.model.name),
        ("SerialNumber", pdu.serial),
        ("BootMonitorRev", BOOT_MONITOR),
        ("LongDescription", pdu.model.description),
        ("NMCSerialNumber", pdu.serial),
    ):
        yield fixed(ident[name], value, 1)


def _device_config(pdu: Pdu) -> Iterator[Variable]:
    config, record = mib.DEVICE_CONFIG, pdu.record
    yield from shared_variables(pdu, config)
    yield setting(pdu, config["Module"], "module", 1, high=MODULES)
    yield setting(pdu, config["Name"], "name", 1)
    yield setting(pdu, config["Location"], "location", 1)
    yield setting(pdu, config["Contact"], "contact", 1)
    yield setting(pdu, config["DisplayOrientation"], "orientation", 1)
    yield setting(pdu, config["ColdstartDelay"], "coldstart_delay", 1)
    yield from thresholds(pdu, config, "PowerThreshold", 1, lambda settings: settings.device, pdu.model.watts // 100)
    yield _reset(config["DevicePeakPowerReset"], 1, lambda: pdu.reset(record.device_peak))
    yield _reset(config["DeviceEnergyReset"], 1, pdu.reset_energy)
    for name in ("OutletsEnergyReset", "OutletsPeakLoadReset"):  # outlets are not metered
        yield fixed(config[name], config[name].names["notSupported"], 1)


def _device_properties(pdu: Pdu) -> Iterator[Variable]:
    properties, model = mib.DEVICE_PROPERTIES, pdu.model
    yield from shared_variables(pdu, properties)
    yield Variable(properties["Name"], 1, lambda: pdu.settings.name)
    for name, value in (
        ("NumOutlets", len(model.outlets)),
        ("NumSwitchedOutlets", len(model.outlets) if model.switched else 0),
        ("NumMeteredOutlets", 0),
        ("NumPhases", model.phases),
        ("NumMeteredBanks", len(model.bank_phases)),
        ("MaxCurrentRating", model.phase_amps),
        ("Orientation", properties["Orientation"].names["vertical"]),
        ("OutletLayout", properties["OutletLayout"].names[model.layout]),
        ("MaxPhaseCurrentRating", model.phase_amps),
        ("DevicePowerRating", model.watts),
    ):
        yield fixed(properties[name], value, 1)


def _device_status(pdu: Pdu) -> Iterator[Variable]:
    status, record = mib.DEVICE_STATUS, pdu.record
    pending = status["CommandPending"].names
    yield from shared_variables(pdu, status)
    yield Variable(status["Name"], 1, lambda: pdu.settings.name)
    yield Variable(status["LoadState"], 1, lambda: int(pdu.state("device")))
    yield Variable(status["Power"], 1, lambda: hundredths_of_kilo(pdu.reading.device))
    yield from _peak(status, "PeakPower", 1, record.device_peak)
    yield Variable(status["Energy"], 1, lambda: int(record.energy / 100))
    yield Variable(status["EnergyStartTime"], 1, lambda: record.energy_since)
    yield Variable(
        status["CommandPending"],
        1,
        lambda: pending["commandPending" if pdu.outlets.any_pending else "noCommandPending"],
    )
    for name, text in (
        ("PowerSupplyAlarm", "normal"),
        ("PowerSupply1Status", "normal"),
        ("PowerSupply2Status", "notInstalled"),
        ("NPSType", "notNPS"),
    ):
        yield fixed(status[name], status[name].names[text], 1)
    yield fixed(status["OutletsEnergyStartTime"], "notsupported", 1)
    yield Variable(status["ApparentPower"], 1, lambda: hundredths_of_kilo(pdu.reading.device / POWER_FACTOR))
    yield fixed(status["PowerFactor"], round(POWER_FACTOR * 100), 1)


def _phase(pdu: Pdu, number: int) -> Iterator[Variable]:
    config, status, record = mib.PHASE_CONFIG, mib.PHASE_STATUS, pdu.record
    for table in (config, mib.PHASE_PROPERTIES, status):
        yield from shared_variables(pdu, table, number)
    yield from thresholds(
        pdu, config, "CurrentThreshold", number, lambda settings: settings.phases[number - 1], pdu.model.phase_amps
    )
    yield _reset(config["PhasePeakCurrentReset"], number, lambda: pdu.reset(record.phase_peaks[number - 1]))

    def watts() -> float:
        return pdu.reading.phases[number - 1]

    yield Variable(status["LoadState"], number, lambda: int(pdu.state("phase", number)))
    yield Variable(status["Current"], number, lambda: tenths_of_amps(watts()))
    yield fixed(status["Voltage"], VOLTAGE, number)
    yield Variable(status["Power"], number, lambda: hundredths_of_kilo(watts()))
    yield Variable(status["ApparentPower"], number, lambda: hundredths_of_kilo(watts() / POWER_FACTOR))
    yield fixed(status["PowerFactor"], round(POWER_FACTOR * 100), number)
    yield from _peak(status, "PeakCurrent", number, record.phase_peaks[number - 1])


def _bank(pdu: Pdu, number: int) -> Iterator[Variable]:
    config, properties, status, model = mib.BANK_CONFIG, mib.BANK_PROPERTIES, mib.BANK_STATUS, pdu.model
    peak = pdu.record.bank_peaks[number - 1]
    for table in (config, properties, status):
        yield from shared_variables(pdu, table, number)
    yield from thresholds(
        pdu, config, "CurrentThreshold", number, lambda settings: settings.banks[number - 1], model.bank_amps
    )
    yield _reset(config["BankPeakCurrentReset"], number, lambda: pdu.reset(peak))
    wiring = f"seqPhase{model.bank_phases[number - 1]}ToNeutral"
    yield fixed(properties["PhaseLayout"], properties["PhaseLayout"].names[wiring], number)
    yield fixed(properties["BreakerRating"], model.bank_amps, number)
    yield Variable(status["LoadState"], number, lambda: int(pdu.state("bank", number)))
    yield Variable(status["Current"], number, lambda: tenths_of_amps(pdu.reading.banks[number - 1]))
    yield from _peak(status, "PeakCurrent", number, peak)


def _peak(table: Table, name: str, row: int, peak: Peak) -> Iterator[Variable]:
    yield Variable(table[name], row, lambda: peak.value)
    yield Variable(table[f"{name}Timestamp"], row, lambda: peak.at)
    yield Variable(table[f"{name}StartTime"], row, lambda: peak.since)


def _reset(column: Column, row: int, action: Callable[[], None]) -> Variable:
    """Return an object that triggers a reset when written, and reads as noOperation."""

    def write(draft: Draft, value: Any) -> None:
        if column.text(value) == "notSupported":
            raise SnmpError(Status.WRONG_VALUE)
        if column.text(value) == "reset":
            draft.actions.append(action)

    return Variable(column, row, lambda: column.names["noOperation"], write)


def _receiver(pdu: Pdu, row: int) -> Iterator[Variable]:
    table = mib.TRAP_RECEIVERS
    yes, no = (table["acceptThisReceiver"].names[text] for text in ("yes", "no"))

    def receiver(settings: Settings) -> Receiver:
        return settings.receivers[row - 1]

    def address(draft: Draft, value: Any) -> None:
        receiver(draft.settings).address = str(value)

    def community(draft: Draft, value: Any) -> None:
        receiver(draft.settings).community = str(value)

    def enabled(draft: Draft, value: Any) -> None:
        receiver(draft.settings).enabled = value == yes

    yield fixed(table["trapIndex"], row, row)
    yield Variable(table["receiverAddr"], row, lambda: receiver(pdu.settings).address, address)
    yield Variable(table["communityString"], row, lambda: receiver(pdu.settings).community, community)
    yield fixed(table["severity"], table["severity"].names["information"], row)
    yield Variable(table["acceptThisReceiver"], row, lambda: yes if receiver(pdu.settings).enabled else no, enabled)
    yield fixed(table["receiveTrapType"], table["receiveTrapType"].names["powernet"], row)
