# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of a PDU's tables as objects, in common units: A, kW, kWh, V and words. No I/O."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from ..reconcile import Object, UserError
from . import mib
from .session import Oid, Value
from .smi import Column, Syntax

UNIT = 1  # row of the PDU with the agent; other PDUs can share its network port
LOAD_STATES = {"lowLoad": "low_load", "normal": "normal", "nearOverload": "near_overload", "overload": "overload"}
_BOOLEANS = {"yes": True, "no": False}
_WORDS = {value: word for word, value in _BOOLEANS.items()}
_NOT_SUPPORTED = -1  # in a number that cannot be negative
_NOT_SUPPORTED_WORD = "notsupported"
_WATTS = 1000  # a rating from this value on is in W


@dataclass(frozen=True)
class Rows:
    """Columns of one or several tables that describe the same rows, by their names in objects.

    ``key`` is the column with the number of the row for users.
    """

    key: Column
    columns: dict[str, Column]

    def oids(self, count: int) -> list[Oid]:
        """Return the variables of this number of rows."""
        return [column.at(row) for row in range(1, count + 1) for column in (self.key, *self.columns.values())]

    def objects(self, values: t.Mapping[Oid, Value], count: int) -> list[Object]:
        """Return the rows, each with ``number`` and ``row``, without fields that the model does not report."""
        found = []
        for row in range(1, count + 1):
            number = values.get(self.key.at(row))
            if isinstance(number, int):
                item = {name: decode(column, values.get(column.at(row))) for name, column in self.columns.items()}
                found.append({"number": number, "row": row, **_reported(item)})
        return found


def decode_row(columns: t.Mapping[str, Column], values: t.Mapping[Oid, Value], row: int = UNIT) -> Object:
    """Return one row as an object, without fields that the model does not report."""
    return _reported({name: decode(column, values.get(column.at(row))) for name, column in columns.items()})


def oids(columns: t.Mapping[str, Column], row: int = UNIT) -> list[Oid]:
    """Return the variables of one row."""
    return [column.at(row) for column in columns.values()]


def _reported(item: Object) -> Object:
    return {name: value for name, value in item.items() if value is not None}


def decode(column: Column, value: Value) -> t.Any:
    """Return a value in common units; None for an unsupported field or an unexpected type."""
    if column.syntax is Syntax.ADDRESS:
        return str(value) if isinstance(value, IPv4Address) else None
    if column.syntax is Syntax.TEXT:
        return value if isinstance(value, str) else None
    if not isinstance(value, int):
        return None
    if column.names:
        word = column.text(value)
        if word.lower() == _NOT_SUPPORTED_WORD:
            return None
        return _BOOLEANS.get(word, LOAD_STATES.get(word, word))
    if value == _NOT_SUPPORTED and column.low != _NOT_SUPPORTED:
        return None
    return value / column.per_unit if column.per_unit > 1 else value


def encode(column: Column, value: t.Any, label: str) -> Value:
    """Return the value to write; ``label`` names it in messages. Raises UserError for an invalid value."""
    if column.syntax is Syntax.ADDRESS:
        return address(value, label)
    if column.syntax is Syntax.TEXT:
        if not (value.isascii() and value.isprintable()):
            raise UserError(
                "Cannot set %s to %r: a PDU stores printable ASCII only. Use other characters." % (label, value)
            )
        return str(value)
    if column.names:
        return column.names[_WORDS.get(value, value)]
    counts = round(value * column.per_unit)
    if abs(counts - value * column.per_unit) > 1e-6:
        raise UserError(
            "Cannot set %s to %g %s: a PDU stores multiples of %g %s. Round the value."
            % (label, value, column.unit, 1 / column.per_unit, column.unit)
        )
    # The PDU checks the maximum: later firmware allows more than the MIB does.
    least = 0 if column.low is None else column.low
    if counts < least:
        raise UserError(
            "Cannot set %s to %g %s: the minimum is %g %s. Raise the value."
            % (label, value, column.unit, least, column.unit)
        )
    return int(counts)


def address(value: str, label: str) -> IPv4Address:
    """Parse an IPv4 address; the tables hold no other kind. Raises UserError."""
    try:
        return IPv4Address(value)
    except AddressValueError:
        raise UserError(
            "Cannot use the %s '%s': it is not an IPv4 address. Write one like 10.1.3.9." % (label, value)
        ) from None


def kilowatts(rating: t.Any) -> float | None:
    """Return a power rating in kW. Agents report W (PowerNet-MIB 4.3.3) or tenths of kW (4.5.2)."""
    if not isinstance(rating, int) or rating <= 0:
        return None
    return rating / 1000 if rating >= _WATTS else rating / 10


# Numbers of rows.
SIZES: dict[str, Column] = {
    "units": mib.TABLE_SIZES["IdentTableSize"],
    "phases": mib.TABLE_SIZES["PhaseTableSize"],
    "banks": mib.TABLE_SIZES["BankTableSize"],
    "outlets": mib.TABLE_SIZES["OutletSwitchedTableSize"],
    "trap_receivers": mib.TRAP_RECEIVER_COUNT,
}
IDENTITY: dict[str, Column] = {
    "model": mib.IDENT["ModelNumber"],
    "serial": mib.IDENT["SerialNumber"],
    "firmware": mib.IDENT["FirmwareRev"],
    "hardware": mib.IDENT["HardwareRev"],
    "outlets": mib.DEVICE_PROPERTIES["NumOutlets"],
    "switched_outlets": mib.DEVICE_PROPERTIES["NumSwitchedOutlets"],
    "phase_breaker": mib.DEVICE_PROPERTIES["MaxPhaseCurrentRating"],
    "power_rating": mib.DEVICE_PROPERTIES["DevicePowerRating"],
}
SETTINGS: dict[str, Column] = {
    "name": mib.DEVICE_CONFIG["Name"],
    "location": mib.DEVICE_CONFIG["Location"],
    "contact": mib.DEVICE_CONFIG["Contact"],
    "low_load": mib.DEVICE_CONFIG["LowLoadPowerThreshold"],
    "near_overload": mib.DEVICE_CONFIG["NearOverloadPowerThreshold"],
    "overload": mib.DEVICE_CONFIG["OverloadPowerThreshold"],
}
DEVICE_LOAD: dict[str, Column] = {
    "power": mib.DEVICE_STATUS["Power"],
    "apparent_power": mib.DEVICE_STATUS["ApparentPower"],
    "energy": mib.DEVICE_STATUS["Energy"],
    "load_state": mib.DEVICE_STATUS["LoadState"],
    "supply_alarm": mib.DEVICE_STATUS["PowerSupplyAlarm"],
}
PHASES = Rows(
    mib.PHASE_CONFIG["Number"],
    {
        "low_load": mib.PHASE_CONFIG["LowLoadCurrentThreshold"],
        "near_overload": mib.PHASE_CONFIG["NearOverloadCurrentThreshold"],
        "overload": mib.PHASE_CONFIG["OverloadCurrentThreshold"],
    },
)
BANKS = Rows(
    mib.BANK_CONFIG["Number"],
    {
        "low_load": mib.BANK_CONFIG["LowLoadCurrentThreshold"],
        "near_overload": mib.BANK_CONFIG["NearOverloadCurrentThreshold"],
        "overload": mib.BANK_CONFIG["OverloadCurrentThreshold"],
        "breaker": mib.BANK_PROPERTIES["BreakerRating"],
    },
)
PHASE_LOADS = Rows(
    mib.PHASE_STATUS["Number"],
    {
        "current": mib.PHASE_STATUS["Current"],
        "voltage": mib.PHASE_STATUS["Voltage"],
        "power": mib.PHASE_STATUS["Power"],
        "load_state": mib.PHASE_STATUS["LoadState"],
    },
)
BANK_LOADS = Rows(
    mib.BANK_STATUS["Number"],
    {
        "current": mib.BANK_STATUS["Current"],
        "load_state": mib.BANK_STATUS["LoadState"],
        "breaker": mib.BANK_PROPERTIES["BreakerRating"],
        "wiring": mib.BANK_PROPERTIES["PhaseLayout"],
    },
)
OUTLETS = Rows(
    mib.OUTLET_CONFIG["Number"],
    {
        "name": mib.OUTLET_CONFIG["Name"],
        "on_delay": mib.OUTLET_CONFIG["PowerOnTime"],
        "off_delay": mib.OUTLET_CONFIG["PowerOffTime"],
        "reboot_duration": mib.OUTLET_CONFIG["RebootDuration"],
        "state": mib.OUTLET_STATUS["State"],
        "bank": mib.OUTLET_PROPERTIES["Bank"],
    },
)
RECEIVERS = Rows(
    mib.TRAP_RECEIVERS["trapIndex"],
    {
        "address": mib.TRAP_RECEIVERS["receiverAddr"],
        "community": mib.TRAP_RECEIVERS["communityString"],
        "enabled": mib.TRAP_RECEIVERS["acceptThisReceiver"],
    },
)
# Wiring of a bank or an outlet -> its phases.
PHASES_OF = {
    "seqPhase1ToNeutral": (1,),
    "seqPhase2ToNeutral": (2,),
    "seqPhase3ToNeutral": (3,),
    "seqPhase1ToPhase2": (1, 2),
    "seqPhase2ToPhase3": (2, 3),
    "seqPhase3ToPhase1": (3, 1),
}
