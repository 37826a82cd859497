# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects that only the twin serves: the legacy rPDU tree, and sizes of empty rPDU2 tables.

The legacy tree 1.3.6.1.4.1.318.1.1.12 is that of first-generation PDUs. Second-generation PDUs serve it too, and many
monitoring systems discover phases, banks and outlets there. Names, numbers, types, access and enumerations are those of
PowerNet-MIB 4.4.1. Units: loads in tenths of A, thresholds and ratings in A, power factor in thousandths.
"""

from __future__ import annotations

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Column, Oid, Syntax, Table, choice, integer, text, writable

RPDU: Oid = (*mib.APC, 1, 1, 12)

_LOAD_STATES = ("LoadNormal", "LoadLow", "LoadNearOverload", "LoadOverload")
_ALARMS = ("noLoadAlarm", "underCurrentAlarm", "nearOverCurrentAlarm", "overCurrentAlarm")
_SUPPLIES = ("One", "Two", "OneandTwo")
_RESTRICTION = ("alwaysAllowTurnON", "restrictOnNearOverload", "restrictOnOverload")
_PHASES = ("phase1", "phase2", "phase3", "phase1-2", "phase2-3", "phase3-1")
_LAYOUTS = (
    "seqPhaseToNeutral",
    "seqPhaseToPhase",
    "seqPhToNeu21PhToPh",
    "seqPhToPhGrouped",
    "seqPhToNGrouped",
    "seqPToN1516PToPGrouped",
    "seqPhToPh2xGrouped",
    "seqPhToN2xGrouped",
    "seqNotApplicable",
)
_DEVICE_COMMANDS = (
    "noCommandAll",
    "immediateAllOn",
    "immediateAllOff",
    "immediateAllReboot",
    "delayedAllOn",
    "delayedAllOff",
    "delayedAllReboot",
    "cancelAllPendingCommands",
)
_OUTLET_COMMANDS = (
    "immediateOn",
    "immediateOff",
    "immediateReboot",
    "delayedOn",
    "delayedOff",
    "delayedReboot",
    "cancelPendingCommand",
)


def _gauge(name: str, number: int, unit: str = "", per_unit: int = 1) -> Column:
    return Column(name, (number,), Syntax.GAUGE, unit, per_unit)


def _like(column: Column, desired: Column) -> Column:
    """Return a writable column with the range of ``desired``, because both set the same value."""
    return writable(column, desired.low, desired.high)


IDENT = Table(
    "rPDUIdent",
    (*RPDU, 1),
    writable(text("Name", 1)),
    text("HardwareRev", 2),
    text("FirmwareRev", 3),
    text("DateOfManufacture", 4),
    text("ModelNumber", 5),
    text("SerialNumber", 6),
    integer("DeviceRating", 7, "A"),
    integer("DeviceNumOutlets", 8),
    integer("DeviceNumPhases", 9),
    integer("DeviceNumBreakers", 10),
    integer("DeviceBreakerRating", 11, "A"),
    choice("DeviceOrientation", 12, "orientHorizontal", "orientVertical"),
    choice("DeviceOutletLayout", 13, *_LAYOUTS),
    writable(choice("DeviceDisplayOrientation", 14, "displayNormal", "displayReverse")),
    integer("DeviceLinetoLineVoltage", 15, "V"),
    integer("DevicePowerWatts", 16, "W"),
    integer("DevicePowerFactor", 17, "", 1000),
    integer("DevicePowerVA", 18, "VA"),
    integer("DeviceLinetoNeutralVoltage", 19, "V"),
)

LOAD_DEVICE = Table(
    "rPDULoadDev",
    (*RPDU, 2, 1),
    integer("MaxPhaseLoad", 1, "A"),
    integer("NumPhases", 2),
    integer("MaxBankLoad", 3, "A"),
    integer("NumBanks", 4),
    integer("BankTableSize", 5),
    integer("MaxOutletTableSize", 7),
)

LOAD_BANKS = Table(
    "rPDULoadDevBank",
    (*RPDU, 2, 1, 6, 1),
    integer("Index", 1),
    integer("Number", 2),
    integer("MaxLoad", 3, "A"),
)

LOAD_PHASE_CONFIG = Table(
    "rPDULoadPhaseConfig",
    (*RPDU, 2, 2, 1, 1),
    choice("Index", 1, *_PHASES[:3]),
    writable(integer("LowLoadThreshold", 2, "A")),
    writable(integer("NearOverloadThreshold", 3, "A")),
    writable(integer("OverloadThreshold", 4, "A")),
    choice("Alarm", 5, *_ALARMS),
)

# Phases first, then banks.
LOAD_STATUS = Table(
    "rPDULoadStatus",
    (*RPDU, 2, 3, 1, 1),
    integer("Index", 1),
    _gauge("Load", 2, "A", 10),
    choice("LoadState", 3, *(f"phase{state}" for state in _LOAD_STATES)),
    integer("PhaseNumber", 4),
    integer("BankNumber", 5),
)

LOAD_BANK_CONFIG = Table(
    "rPDULoadBankConfig",
    (*RPDU, 2, 4, 1, 1),
    integer("Index", 1),
    writable(integer("LowLoadThreshold", 2, "A")),
    writable(integer("NearOverloadThreshold", 3, "A")),
    writable(integer("OverloadThreshold", 4, "A")),
    choice("Alarm", 5, *_ALARMS),
)

# Metered models have the three numbers only.
OUTLET_DEVICE = Table(
    "rPDUOutletDev",
    (*RPDU, 3, 1),
    writable(choice("Command", 1, *_DEVICE_COMMANDS)),
    _like(integer("ColdstartDelay", 2, "s"), mib.DEVICE_CONFIG["ColdstartDelay"]),
    integer("NumCntrlOutlets", 3),
    integer("NumTotalOutlets", 4),
    integer("MonitoredOutlets", 5),
)

# Only switched models have the following tables.
OUTLET_PHASE = Table(
    "rPDUOutletPhase",
    (*RPDU, 3, 2, 1, 1),
    choice("Index", 1, *_PHASES[:3]),
    writable(choice("OverloadRestriction", 2, *_RESTRICTION)),
)

OUTLET_CONTROL = Table(
    "rPDUOutletControl",
    (*RPDU, 3, 3, 1, 1),
    integer("Index", 1),
    text("OutletName", 2),
    choice("OutletPhase", 3, *_PHASES),
    writable(choice("OutletCommand", 4, *_OUTLET_COMMANDS)),  # reads as immediateOn or immediateOff
    integer("OutletBank", 5),
)

OUTLET_CONFIG = Table(
    "rPDUOutletConfig",
    (*RPDU, 3, 4, 1, 1),
    integer("Index", 1),
    writable(text("OutletName", 2)),
    choice("OutletPhase", 3, *_PHASES),
    _like(integer("PowerOnTime", 4, "s"), mib.OUTLET_CONFIG["PowerOnTime"]),
    _like(integer("PowerOffTime", 5, "s"), mib.OUTLET_CONFIG["PowerOffTime"]),
    _like(integer("RebootDuration", 6, "s"), mib.OUTLET_CONFIG["RebootDuration"]),
    integer("OutletBank", 7),
)

OUTLET_MONITORED_SIZE = Column("rPDUOutletConfigMonitoredTableSize", (*RPDU, 3, 4, 2), Syntax.INTEGER)

# rPDUOutletStatusLoad is for models with metered outlets only.
OUTLET_STATUS = Table(
    "rPDUOutletStatus",
    (*RPDU, 3, 5, 1, 1),
    integer("Index", 1),
    text("OutletName", 2),
    choice("OutletPhase", 3, *_PHASES),
    choice("OutletState", 4, "outletStatusOn", "outletStatusOff"),
    choice("CommandPending", 5, "outletStatusCommandPending", "outletStatusNoCommandPending"),
    integer("OutletBank", 6),
)

OUTLET_BANK = Table(
    "rPDUOutletBank",
    (*RPDU, 3, 6, 1, 1),
    integer("Index", 1),
    writable(choice("OverloadRestriction", 2, *_RESTRICTION)),
)

POWER_SUPPLY = Table(
    "rPDUPowerSupply",
    (*RPDU, 4, 1),
    choice("1Status", 1, "powerSupplyOneOk", "powerSupplyOneFailed"),
    choice("2Status", 2, "powerSupplyTwoOk", "powerSupplyTwoFailed", "powerSupplyTwoNotPresent"),
    choice("Alarm", 3, "allAvailablePowerSuppliesOK", *(f"powerSupply{which}Failed" for which in _SUPPLIES)),
)

STATUS_SIZES = Table(
    "rPDUStatus",
    (*RPDU, 5),
    integer("BankTableSize", 1),
    integer("PhaseTableSize", 3),
    integer("OutletTableSize", 5),
)

STATUS_BANK = Table(
    "rPDUStatusBank",
    (*RPDU, 5, 2, 1),
    integer("Index", 1),
    integer("Number", 2),
    choice("State", 3, *(f"bank{state}" for state in _LOAD_STATES)),
)

STATUS_PHASE = Table(
    "rPDUStatusPhase",
    (*RPDU, 5, 4, 1),
    integer("Index", 1),
    integer("Number", 2),
    choice("State", 3, *(f"phase{state}" for state in _LOAD_STATES)),
)

# Numbers of rows of rPDU2 tables that are always empty: without metered outlets, sensors, and outputs between phases.
EMPTY_TABLE_SIZES = Table(
    "rPDU2",
    mib.RPDU2,
    Column("OutletMeteredTableSize", (9, 3), Syntax.INTEGER),
    Column("SensorTempHumidityTableSize", (10, 1), Syntax.INTEGER),
    Column("SensorDiscreteTableSize", (10, 3), Syntax.INTEGER),
    integer("PhaseToPhaseStatusTableSize", 12),
)
