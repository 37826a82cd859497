# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of a rack PDU: the rPDU2 tables of APC's PowerNet-MIB, its trap receivers, and the system group.

Every column here was compared with PowerNet-MIB 4.3.3 (July 2020): name, number, type, access and enumeration. Units
and scales are those of its descriptions. Currents are in tenths of A, but their thresholds in A. Powers are in
hundredths of kW, but their thresholds in tenths. Energy is in tenths of kWh.
"""

from __future__ import annotations

from .smi import Column, Oid, Syntax, Table, choice, integer, text, writable

APC: Oid = (1, 3, 6, 1, 4, 1, 318)
RPDU2: Oid = (*APC, 1, 1, 26)
RPDU2_OBJECT_ID: Oid = (*APC, 1, 3, 4, 6)  # the sysObjectID of a second-generation rack PDU
SYSTEM: Oid = (1, 3, 6, 1, 2, 1, 1)

_INDEX, _MODULE, _NUMBER = integer("Index", 1), integer("Module", 2), integer("Number", 3)
_LOAD_STATES = ("lowLoad", "normal", "nearOverload", "overload")
_RESET = ("noOperation", "reset")
_RESTRICTION = ("alwaysAllowTurnON", "restrictOnNearOverload", "restrictOnOverload", "notSupported")
_PENDING = ("commandPending", "noCommandPending", "commandPendingUnknown")
_SUPPLY = ("normal", "alarm", "notInstalled")
_WIRING = (
    "seqPhase1ToNeutral",
    "seqPhase2ToNeutral",
    "seqPhase3ToNeutral",
    "seqPhase1ToPhase2",
    "seqPhase2ToPhase3",
    "seqPhase3ToPhase1",
)
_DEVICE_COMMANDS = (
    "immediateAllOn",
    "delayedAllOn",
    "immediateAllOff",
    "immediateAllReboot",
    "delayedAllReboot",
    "noCommandAll",
    "delayedAllOff",
    "cancelAllPendingCommands",
)
_OUTLET_COMMANDS = (
    "immediateOn",
    "immediateOff",
    "immediateReboot",
    "outletUnknown",
    "delayedOn",
    "delayedOff",
    "delayedReboot",
    "cancelPendingCommand",
)
_OUTLET_LAYOUTS = (
    "seqPhaseToNeutral",
    "seqPhaseToPhase",
    "seqPhToNeu21PhToPh",
    "seqPhToPhGrouped",
    "seqPhToNGrouped",
    "seqPToN1516PToPGrouped",
    "seqPhToPh2xGrouped",
    "seqPhToN2xGrouped",
    "seqNotApplicable",
    "seqPhToNPhToPhPhToN",
)

SYSTEM_GROUP = Table(
    "sys",
    SYSTEM,
    text("Descr", 1),
    Column("ObjectID", (2,), Syntax.OBJECT_ID),
    Column("UpTime", (3,), Syntax.TIME_TICKS, "s", 100),
    writable(text("Contact", 4)),
    writable(text("Name", 5)),
    writable(text("Location", 6)),
    integer("Services", 7),
)

# Numbers of rows of the tables.
TABLE_SIZES = Table(
    "rPDU2",
    RPDU2,
    integer("IdentTableSize", 1),
    integer("DeviceTableSize", 3),
    integer("PhaseTableSize", 5),
    integer("BankTableSize", 7),
    Column("OutletSwitchedTableSize", (9, 1), Syntax.INTEGER),
)

IDENT = Table(
    "rPDU2Ident",
    (*RPDU2, 2, 1),
    _INDEX,
    _MODULE,
    text("Name", 3),
    text("Location", 4),
    text("HardwareRev", 5),
    text("FirmwareRev", 6),
    text("DateOfManufacture", 7),
    text("ModelNumber", 8),
    text("SerialNumber", 9),
    text("Contact", 10),
    text("BootMonitorRev", 11),
    text("LongDescription", 12),
    text("NMCSerialNumber", 13),
)

DEVICE_CONFIG = Table(
    "rPDU2DeviceConfig",
    (*RPDU2, 4, 1, 1),
    _INDEX,
    writable(_MODULE),
    writable(text("Name", 3)),
    writable(text("Location", 4)),
    writable(choice("DisplayOrientation", 5, "displayNormal", "displayReverse")),
    writable(integer("ColdstartDelay", 6, "s"), -1, 300),  # -1: never
    writable(integer("LowLoadPowerThreshold", 7, "kW", 10)),
    writable(integer("NearOverloadPowerThreshold", 8, "kW", 10)),
    writable(integer("OverloadPowerThreshold", 9, "kW", 10)),
    writable(choice("DevicePeakPowerReset", 10, *_RESET, "notSupported")),
    writable(choice("DeviceEnergyReset", 11, *_RESET, "notSupported")),
    writable(choice("OutletsEnergyReset", 12, *_RESET, "notSupported")),
    writable(choice("OutletsPeakLoadReset", 13, *_RESET, "notSupported")),
    writable(text("Contact", 14)),
)

DEVICE_PROPERTIES = Table(
    "rPDU2DeviceProperties",
    (*RPDU2, 4, 2, 1),
    _INDEX,
    _MODULE,
    text("Name", 3),
    integer("NumOutlets", 4),
    integer("NumSwitchedOutlets", 5),
    integer("NumMeteredOutlets", 6),
    integer("NumPhases", 7),
    integer("NumMeteredBanks", 8),
    integer("MaxCurrentRating", 9, "A"),
    choice("Orientation", 10, "horizontal", "vertical", "verticalISXv2", "verticalISXv3"),
    choice("OutletLayout", 11, *_OUTLET_LAYOUTS),
    integer("MaxPhaseCurrentRating", 12, "A"),
    integer("DevicePowerRating", 13, "W"),
)

DEVICE_STATUS = Table(
    "rPDU2DeviceStatus",
    (*RPDU2, 4, 3, 1),
    _INDEX,
    _MODULE,
    text("Name", 3),
    choice("LoadState", 4, *_LOAD_STATES, "notsupported"),
    integer("Power", 5, "kW", 100),
    integer("PeakPower", 6, "kW", 100),
    text("PeakPowerTimestamp", 7),
    text("PeakPowerStartTime", 8),
    integer("Energy", 9, "kWh", 10),
    text("EnergyStartTime", 10),
    choice("CommandPending", 11, *_PENDING),
    choice("PowerSupplyAlarm", 12, "normal", "alarm"),
    choice("PowerSupply1Status", 13, *_SUPPLY),
    choice("PowerSupply2Status", 14, *_SUPPLY),
    text("OutletsEnergyStartTime", 15),
    integer("ApparentPower", 16, "kVA", 100),
    integer("PowerFactor", 17, "", 100),
    choice("NPSType", 18, "notNPS", "host", "guest"),
)

# Only switched models have this table.
DEVICE_CONTROL = Table(
    "rPDU2DeviceControl",
    (*RPDU2, 4, 4, 1),
    _INDEX,
    _MODULE,
    text("Name", 3),
    writable(choice("Command", 4, *_DEVICE_COMMANDS)),
)

PHASE_CONFIG = Table(
    "rPDU2PhaseConfig",
    (*RPDU2, 6, 1, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    writable(choice("OverloadRestriction", 4, *_RESTRICTION)),
    writable(integer("LowLoadCurrentThreshold", 5, "A")),
    writable(integer("NearOverloadCurrentThreshold", 6, "A")),
    writable(integer("OverloadCurrentThreshold", 7, "A")),
    writable(choice("PhasePeakCurrentReset", 8, *_RESET)),
)

PHASE_PROPERTIES = Table("rPDU2PhaseProperties", (*RPDU2, 6, 2, 1), _INDEX, _MODULE, _NUMBER)

PHASE_STATUS = Table(
    "rPDU2PhaseStatus",
    (*RPDU2, 6, 3, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    choice("LoadState", 4, *_LOAD_STATES),
    integer("Current", 5, "A", 10),
    integer("Voltage", 6, "V"),
    integer("Power", 7, "kW", 100),
    integer("ApparentPower", 8, "kVA", 100),
    integer("PowerFactor", 9, "", 100),
    integer("PeakCurrent", 10, "A", 10),
    text("PeakCurrentTimestamp", 11),
    text("PeakCurrentStartTime", 12),
)

BANK_CONFIG = Table(
    "rPDU2BankConfig",
    (*RPDU2, 8, 1, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    writable(choice("OverloadRestriction", 4, *_RESTRICTION)),
    writable(integer("LowLoadCurrentThreshold", 5, "A")),
    writable(integer("NearOverloadCurrentThreshold", 6, "A")),
    writable(integer("OverloadCurrentThreshold", 7, "A")),
    writable(choice("BankPeakCurrentReset", 8, *_RESET)),
)

BANK_PROPERTIES = Table(
    "rPDU2BankProperties",
    (*RPDU2, 8, 2, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    choice("PhaseLayout", 4, *_WIRING),
    integer("BreakerRating", 5, "A"),
)

BANK_STATUS = Table(
    "rPDU2BankStatus",
    (*RPDU2, 8, 3, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    choice("LoadState", 4, *_LOAD_STATES),
    integer("Current", 5, "A", 10),
    integer("PeakCurrent", 6, "A", 10),
    text("PeakCurrentTimestamp", 7),
    text("PeakCurrentStartTime", 8),
)

# The four tables of switched outlets: only switched models have them.
OUTLET_CONFIG = Table(
    "rPDU2OutletSwitchedConfig",
    (*RPDU2, 9, 2, 1, 1),
    _INDEX,
    _MODULE,
    writable(text("Name", 3)),
    integer("Number", 4),
    writable(integer("PowerOnTime", 5, "s"), -1, 300),  # -1: never
    writable(integer("PowerOffTime", 6, "s"), -1, 360),  # -1: never
    writable(integer("RebootDuration", 7, "s"), 5, 60),
    writable(text("ExternalLink", 8)),
)

OUTLET_PROPERTIES = Table(
    "rPDU2OutletSwitchedProperties",
    (*RPDU2, 9, 2, 2, 1),
    _INDEX,
    _MODULE,
    text("Name", 3),
    integer("Number", 4),
    choice("PhaseLayout", 5, *_WIRING),
    integer("Bank", 6),
)

OUTLET_STATUS = Table(
    "rPDU2OutletSwitchedStatus",
    (*RPDU2, 9, 2, 3, 1),
    _INDEX,
    _MODULE,
    text("Name", 3),
    integer("Number", 4),
    choice("State", 5, "off", "on"),
    choice("CommandPending", 6, *_PENDING),
    text("ExternalLink", 7),
)

OUTLET_CONTROL = Table(
    "rPDU2OutletSwitchedControl",
    (*RPDU2, 9, 2, 4, 1),
    _INDEX,
    _MODULE,
    text("Name", 3),
    integer("Number", 4),
    writable(choice("Command", 5, *_OUTLET_COMMANDS)),  # reads as immediateOn or immediateOff
)

TRAP_RECEIVER_COUNT = Column("mconfigNumTrapReceivers", (*APC, 2, 1, 1), Syntax.INTEGER)

# One row for each possible receiver; a receiver with the address 0.0.0.0 is unset. The columns have these names in
# the MIB: trapIndex, receiverAddr, communityString, severity, acceptThisReceiver and receiveTrapType.
TRAP_RECEIVERS = Table(
    "",
    (*APC, 2, 1, 2, 1),
    integer("trapIndex", 1),
    writable(Column("receiverAddr", (2,), Syntax.ADDRESS)),
    writable(text("communityString", 3)),
    choice("severity", 4, "information", "warning", "severe"),
    writable(choice("acceptThisReceiver", 5, "yes", "no")),
    choice("receiveTrapType", 6, "powernet", "ietf", "both"),
)

TABLES: tuple[Table, ...] = (
    IDENT,
    DEVICE_CONFIG,
    DEVICE_PROPERTIES,
    DEVICE_STATUS,
    DEVICE_CONTROL,
    PHASE_CONFIG,
    PHASE_PROPERTIES,
    PHASE_STATUS,
    BANK_CONFIG,
    BANK_PROPERTIES,
    BANK_STATUS,
    OUTLET_CONFIG,
    OUTLET_PROPERTIES,
    OUTLET_STATUS,
    OUTLET_CONTROL,
    TRAP_RECEIVERS,
)
