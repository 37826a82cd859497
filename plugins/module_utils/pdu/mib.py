# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects of a rack PDU: the rPDU2 tables of APC's PowerNet-MIB, its trap receivers, and the system group.

Every column here was compared with PowerNet-MIB 4.3.3 (July 2020): name, number, type, access and enumeration. Units
and scales are those that its descriptions give: currents in tenths of A, but their thresholds in A; powers in
hundredths of kW, but their thresholds in tenths; energy in tenths of kWh.
"""

from __future__ import annotations

import enum
import typing as t
from dataclasses import dataclass, field, replace

Oid = tuple[int, ...]

APC: Oid = (1, 3, 6, 1, 4, 1, 318)
RPDU2: Oid = (*APC, 1, 1, 26)
RPDU2_OBJECT_ID: Oid = (*APC, 1, 3, 4, 6)  # the sysObjectID of a second-generation rack PDU
SYSTEM: Oid = (1, 3, 6, 1, 2, 1, 1)


class Syntax(enum.Enum):
    """SMI types of the columns."""

    INTEGER = "Integer32"
    GAUGE = "Gauge32"
    TEXT = "OctetString"
    OBJECT_ID = "ObjectIdentifier"
    TIME_TICKS = "TimeTicks"
    ADDRESS = "IpAddress"


@dataclass(frozen=True)
class Column:
    """One column of a table, or a scalar, whose only row is 0.

    ``per_unit`` counts are one ``unit``: 153 in a column with unit A and 10 per unit is 15.3 A. Models without a
    feature return ``-1``. ``low`` and ``high`` are the writable range, if the MIB defines one. The range of
    thresholds depends on the ratings of the model, which the MIB does not define.
    """

    name: str
    oid: Oid
    syntax: Syntax
    unit: str = ""
    per_unit: int = 1
    writable: bool = False
    names: t.Mapping[str, int] = field(default_factory=dict)
    low: int | None = None
    high: int | None = None

    def at(self, row: int = 0) -> Oid:
        """Return the object identifier of the value in this row."""
        return (*self.oid, row)

    def text(self, number: int) -> str:
        """Return the name of a value; the number itself if the MIB has no name for it."""
        return next((name for name, value in self.names.items() if value == number), str(number))


class Table(t.Mapping[str, Column]):
    """Columns of a table, by their names without the name of the table: ``DEVICE_CONFIG["Name"].at(1)``."""

    def __init__(self, name: str, entry: Oid, *columns: Column) -> None:
        """``columns`` have names and numbers relative to the table."""
        self.name = name
        self.entry = entry
        self._columns = {c.name: replace(c, name=name + c.name, oid=entry + c.oid) for c in columns}

    def __getitem__(self, name: str) -> Column:
        """Return a column. Raises KeyError."""
        return self._columns[name]

    def __iter__(self) -> t.Iterator[str]:
        """Iterate over the names, in the order of the columns."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._columns)


def _number(name: str, number: int, unit: str = "", per_unit: int = 1) -> Column:
    return Column(name, (number,), Syntax.INTEGER, unit, per_unit)


def _text(name: str, number: int) -> Column:
    return Column(name, (number,), Syntax.TEXT)


def _choice(name: str, number: int, *names: str) -> Column:
    return Column(name, (number,), Syntax.INTEGER, names={text: value for value, text in enumerate(names, 1)})


def _written(column: Column, low: int | None = None, high: int | None = None) -> Column:
    return replace(column, writable=True, low=low, high=high)


_INDEX, _MODULE, _NUMBER = _number("Index", 1), _number("Module", 2), _number("Number", 3)
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
    _text("Descr", 1),
    Column("ObjectID", (2,), Syntax.OBJECT_ID),
    Column("UpTime", (3,), Syntax.TIME_TICKS, "s", 100),
    _written(_text("Contact", 4)),
    _written(_text("Name", 5)),
    _written(_text("Location", 6)),
    _number("Services", 7),
)

# Numbers of rows of the tables.
TABLE_SIZES = Table(
    "rPDU2",
    RPDU2,
    _number("IdentTableSize", 1),
    _number("DeviceTableSize", 3),
    _number("PhaseTableSize", 5),
    _number("BankTableSize", 7),
    Column("OutletSwitchedTableSize", (9, 1), Syntax.INTEGER),
)

IDENT = Table(
    "rPDU2Ident",
    (*RPDU2, 2, 1),
    _INDEX,
    _MODULE,
    _text("Name", 3),
    _text("Location", 4),
    _text("HardwareRev", 5),
    _text("FirmwareRev", 6),
    _text("DateOfManufacture", 7),
    _text("ModelNumber", 8),
    _text("SerialNumber", 9),
    _text("Contact", 10),
    _text("BootMonitorRev", 11),
    _text("LongDescription", 12),
    _text("NMCSerialNumber", 13),
)

DEVICE_CONFIG = Table(
    "rPDU2DeviceConfig",
    (*RPDU2, 4, 1, 1),
    _INDEX,
    _written(_MODULE),
    _written(_text("Name", 3)),
    _written(_text("Location", 4)),
    _written(_choice("DisplayOrientation", 5, "displayNormal", "displayReverse")),
    _written(_number("ColdstartDelay", 6, "s"), -1, 300),  # -1: never
    _written(_number("LowLoadPowerThreshold", 7, "kW", 10)),
    _written(_number("NearOverloadPowerThreshold", 8, "kW", 10)),
    _written(_number("OverloadPowerThreshold", 9, "kW", 10)),
    _written(_choice("DevicePeakPowerReset", 10, *_RESET, "notSupported")),
    _written(_choice("DeviceEnergyReset", 11, *_RESET, "notSupported")),
    _written(_choice("OutletsEnergyReset", 12, *_RESET, "notSupported")),
    _written(_choice("OutletsPeakLoadReset", 13, *_RESET, "notSupported")),
    _written(_text("Contact", 14)),
)

DEVICE_PROPERTIES = Table(
    "rPDU2DeviceProperties",
    (*RPDU2, 4, 2, 1),
    _INDEX,
    _MODULE,
    _text("Name", 3),
    _number("NumOutlets", 4),
    _number("NumSwitchedOutlets", 5),
    _number("NumMeteredOutlets", 6),
    _number("NumPhases", 7),
    _number("NumMeteredBanks", 8),
    _number("MaxCurrentRating", 9, "A"),
    _choice("Orientation", 10, "horizontal", "vertical", "verticalISXv2", "verticalISXv3"),
    _choice("OutletLayout", 11, *_OUTLET_LAYOUTS),
    _number("MaxPhaseCurrentRating", 12, "A"),
    _number("DevicePowerRating", 13, "W"),
)

DEVICE_STATUS = Table(
    "rPDU2DeviceStatus",
    (*RPDU2, 4, 3, 1),
    _INDEX,
    _MODULE,
    _text("Name", 3),
    _choice("LoadState", 4, *_LOAD_STATES, "notsupported"),
    _number("Power", 5, "kW", 100),
    _number("PeakPower", 6, "kW", 100),
    _text("PeakPowerTimestamp", 7),
    _text("PeakPowerStartTime", 8),
    _number("Energy", 9, "kWh", 10),
    _text("EnergyStartTime", 10),
    _choice("CommandPending", 11, *_PENDING),
    _choice("PowerSupplyAlarm", 12, "normal", "alarm"),
    _choice("PowerSupply1Status", 13, *_SUPPLY),
    _choice("PowerSupply2Status", 14, *_SUPPLY),
    _text("OutletsEnergyStartTime", 15),
    _number("ApparentPower", 16, "kVA", 100),
    _number("PowerFactor", 17, "", 100),
    _choice("NPSType", 18, "notNPS", "host", "guest"),
)

# Only switched models have this table.
DEVICE_CONTROL = Table(
    "rPDU2DeviceControl",
    (*RPDU2, 4, 4, 1),
    _INDEX,
    _MODULE,
    _text("Name", 3),
    _written(_choice("Command", 4, *_DEVICE_COMMANDS)),
)

PHASE_CONFIG = Table(
    "rPDU2PhaseConfig",
    (*RPDU2, 6, 1, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    _written(_choice("OverloadRestriction", 4, *_RESTRICTION)),
    _written(_number("LowLoadCurrentThreshold", 5, "A")),
    _written(_number("NearOverloadCurrentThreshold", 6, "A")),
    _written(_number("OverloadCurrentThreshold", 7, "A")),
    _written(_choice("PhasePeakCurrentReset", 8, *_RESET)),
)

PHASE_PROPERTIES = Table("rPDU2PhaseProperties", (*RPDU2, 6, 2, 1), _INDEX, _MODULE, _NUMBER)

PHASE_STATUS = Table(
    "rPDU2PhaseStatus",
    (*RPDU2, 6, 3, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    _choice("LoadState", 4, *_LOAD_STATES),
    _number("Current", 5, "A", 10),
    _number("Voltage", 6, "V"),
    _number("Power", 7, "kW", 100),
    _number("ApparentPower", 8, "kVA", 100),
    _number("PowerFactor", 9, "", 100),
    _number("PeakCurrent", 10, "A", 10),
    _text("PeakCurrentTimestamp", 11),
    _text("PeakCurrentStartTime", 12),
)

BANK_CONFIG = Table(
    "rPDU2BankConfig",
    (*RPDU2, 8, 1, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    _written(_choice("OverloadRestriction", 4, *_RESTRICTION)),
    _written(_number("LowLoadCurrentThreshold", 5, "A")),
    _written(_number("NearOverloadCurrentThreshold", 6, "A")),
    _written(_number("OverloadCurrentThreshold", 7, "A")),
    _written(_choice("BankPeakCurrentReset", 8, *_RESET)),
)

BANK_PROPERTIES = Table(
    "rPDU2BankProperties",
    (*RPDU2, 8, 2, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    _choice("PhaseLayout", 4, *_WIRING),
    _number("BreakerRating", 5, "A"),
)

BANK_STATUS = Table(
    "rPDU2BankStatus",
    (*RPDU2, 8, 3, 1),
    _INDEX,
    _MODULE,
    _NUMBER,
    _choice("LoadState", 4, *_LOAD_STATES),
    _number("Current", 5, "A", 10),
    _number("PeakCurrent", 6, "A", 10),
    _text("PeakCurrentTimestamp", 7),
    _text("PeakCurrentStartTime", 8),
)

# The four tables of switched outlets: only switched models have them.
OUTLET_CONFIG = Table(
    "rPDU2OutletSwitchedConfig",
    (*RPDU2, 9, 2, 1, 1),
    _INDEX,
    _MODULE,
    _written(_text("Name", 3)),
    _number("Number", 4),
    _written(_number("PowerOnTime", 5, "s"), -1, 300),  # -1: never
    _written(_number("PowerOffTime", 6, "s"), -1, 360),  # -1: never
    _written(_number("RebootDuration", 7, "s"), 5, 60),
    _written(_text("ExternalLink", 8)),
)

OUTLET_PROPERTIES = Table(
    "rPDU2OutletSwitchedProperties",
    (*RPDU2, 9, 2, 2, 1),
    _INDEX,
    _MODULE,
    _text("Name", 3),
    _number("Number", 4),
    _choice("PhaseLayout", 5, *_WIRING),
    _number("Bank", 6),
)

OUTLET_STATUS = Table(
    "rPDU2OutletSwitchedStatus",
    (*RPDU2, 9, 2, 3, 1),
    _INDEX,
    _MODULE,
    _text("Name", 3),
    _number("Number", 4),
    _choice("State", 5, "off", "on"),
    _choice("CommandPending", 6, *_PENDING),
    _text("ExternalLink", 7),
)

OUTLET_CONTROL = Table(
    "rPDU2OutletSwitchedControl",
    (*RPDU2, 9, 2, 4, 1),
    _INDEX,
    _MODULE,
    _text("Name", 3),
    _number("Number", 4),
    _written(_choice("Command", 5, *_OUTLET_COMMANDS)),  # reads as immediateOn or immediateOff
)

TRAP_RECEIVER_COUNT = Column("mconfigNumTrapReceivers", (*APC, 2, 1, 1), Syntax.INTEGER)

# One row for each possible receiver; a receiver with the address 0.0.0.0 is unset. The columns have these names in
# the MIB: trapIndex, receiverAddr, communityString, severity, acceptThisReceiver and receiveTrapType.
TRAP_RECEIVERS = Table(
    "",
    (*APC, 2, 1, 2, 1),
    _number("trapIndex", 1),
    _written(Column("receiverAddr", (2,), Syntax.ADDRESS)),
    _written(_text("communityString", 3)),
    _choice("severity", 4, "information", "warning", "severe"),
    _written(_choice("acceptThisReceiver", 5, "yes", "no")),
    _choice("receiveTrapType", 6, "powernet", "ietf", "both"),
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
