# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of the Prometheus SNMP exporter for rack PDUs and switches. No I/O.

Metrics have the names and units of their MIB objects. Recording rules convert them to volts and watts. Objects are
identified by number, so no MIB has to be installed.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.smi import Column, Oid, Syntax, Table

INTERFACES: Oid = (1, 3, 6, 1, 2, 1, 2, 2, 1)  # ifEntry of IF-MIB (RFC 2863)
INTERFACES_EXTENDED: Oid = (1, 3, 6, 1, 2, 1, 31, 1, 1, 1)  # ifXEntry
PROCESSORS: Oid = (1, 3, 6, 1, 2, 1, 25, 3, 3, 1)  # hrProcessorEntry of HOST-RESOURCES-MIB (RFC 2790)


@dataclass(frozen=True)
class Rows:
    """Columns of one table.

    ``index`` is the label for the row number. ``labels`` are columns that become additional labels.
    """

    columns: tuple[tuple[Column, str], ...]  # with the metric type of each
    index: str
    labels: tuple[tuple[str, Column], ...] = ()


def _columns(table: Table, *names: str) -> tuple[tuple[Column, str], ...]:
    return tuple((table[name], "DisplayString" if table[name].syntax is Syntax.TEXT else "gauge") for name in names)


def _column(name: str, entry: Oid, number: int, syntax: Syntax = Syntax.GAUGE, unit: str = "") -> Column:
    return Column(name, (*entry, number), syntax, unit)


_THRESHOLDS = ("NearOverloadCurrentThreshold", "OverloadCurrentThreshold")
_STATES = {"up": 1, "down": 2, "testing": 3, "unknown": 4, "dormant": 5, "notPresent": 6, "lowerLayerDown": 7}

PDU: tuple[Rows, ...] = (
    Rows(_columns(mib.IDENT, "FirmwareRev", "ModelNumber", "SerialNumber"), "index"),
    Rows(_columns(mib.DEVICE_CONFIG, "NearOverloadPowerThreshold", "OverloadPowerThreshold"), "index"),
    Rows(_columns(mib.DEVICE_PROPERTIES, "MaxPhaseCurrentRating", "DevicePowerRating"), "index"),
    Rows(_columns(mib.DEVICE_STATUS, "LoadState", "Power", "PeakPower", "Energy", "PowerSupplyAlarm"), "index"),
    Rows(_columns(mib.PHASE_CONFIG, *_THRESHOLDS), "index", (("phase", mib.PHASE_CONFIG["Number"]),)),
    Rows(
        _columns(mib.PHASE_STATUS, "LoadState", "Current", "Voltage", "Power"),
        "index",
        (("phase", mib.PHASE_STATUS["Number"]),),
    ),
    Rows(_columns(mib.BANK_CONFIG, *_THRESHOLDS), "index", (("bank", mib.BANK_CONFIG["Number"]),)),
    Rows(_columns(mib.BANK_PROPERTIES, "BreakerRating"), "index", (("bank", mib.BANK_PROPERTIES["Number"]),)),
    Rows(_columns(mib.BANK_STATUS, "LoadState", "Current"), "index", (("bank", mib.BANK_STATUS["Number"]),)),
)

SWITCH: tuple[Rows, ...] = (
    Rows(
        (
            (Column("ifAdminStatus", (*INTERFACES, 7), Syntax.INTEGER, names=_STATES), "gauge"),
            (Column("ifOperStatus", (*INTERFACES, 8), Syntax.INTEGER, names=_STATES), "gauge"),
            (_column("ifInDiscards", INTERFACES, 13), "counter"),
            (_column("ifInErrors", INTERFACES, 14), "counter"),
            (_column("ifOutDiscards", INTERFACES, 19), "counter"),
            (_column("ifOutErrors", INTERFACES, 20), "counter"),
            (_column("ifHCInOctets", INTERFACES_EXTENDED, 6, unit="bytes"), "counter"),
            (_column("ifHCOutOctets", INTERFACES_EXTENDED, 10, unit="bytes"), "counter"),
            (_column("ifHighSpeed", INTERFACES_EXTENDED, 15, unit="Mbit/s"), "gauge"),
        ),
        "ifIndex",
        (
            ("ifName", _column("ifName", INTERFACES_EXTENDED, 1, Syntax.TEXT)),
            ("ifAlias", _column("ifAlias", INTERFACES_EXTENDED, 18, Syntax.TEXT)),
        ),
    ),
    Rows(((_column("hrProcessorLoad", PROCESSORS, 2, Syntax.INTEGER, "%"), "gauge"),), "hrDeviceIndex"),
)

MODULES: t.Mapping[str, tuple[Rows, ...]] = {"pdu": PDU, "switch": SWITCH}
_UP_TIME = mib.SYSTEM_GROUP["UpTime"]
_LEVELS = {"auth_priv": "authPriv", "auth_no_priv": "authNoPriv", "no_auth_no_priv": "noAuthNoPriv"}


def metrics(kind: str) -> list[str]:
    """Return the metric names of a module."""
    columns = [column.name for rows in MODULES[kind] for column, _type in rows.columns]
    return sorted([*columns, _UP_TIME.name])


def module(kind: str) -> dict[str, t.Any]:
    """Return the exporter module for a ``pdu`` or a ``switch``, without credentials."""
    walk, found = set(), []
    for rows in MODULES[kind]:
        walk.update(_dotted(column.oid) for column, _type in rows.columns)
        walk.update(_dotted(column.oid) for _label, column in rows.labels)
        found.extend(_metric(column, type_, rows) for column, type_ in rows.columns)
    found.append({"name": _UP_TIME.name, "oid": _dotted(_UP_TIME.oid), "type": "gauge", "help": _help(_UP_TIME)})
    return {
        "walk": sorted(walk),
        "get": [_dotted(_UP_TIME.at())],
        "metrics": sorted(found, key=lambda metric: metric["name"]),
        "max_repetitions": 25,
        "retries": 2,
        "timeout": "3s",
    }


def credentials(connection: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the credentials from connection options of the PDU modules; raise ValueError."""
    if connection.get("version", "v3") == "v2c":
        return {"version": 2, "community": _required(connection, "community", "v2c")}
    level = connection.get("security_level", "auth_priv")
    if level not in _LEVELS:
        raise ValueError(f"Cannot use security_level '{level}': it is unknown. Choose from {', '.join(_LEVELS)}.")
    auth: dict[str, t.Any] = {"version": 3, "security_level": _LEVELS[level]}
    auth["username"] = _required(connection, "username", "v3")
    if level != "no_auth_no_priv":
        auth["auth_protocol"] = connection.get("auth_protocol", "sha").upper()
        auth["password"] = _required(connection, "auth_key", level)
    if level == "auth_priv":
        auth["priv_protocol"] = connection.get("priv_protocol", "aes").upper()
        auth["priv_password"] = _required(connection, "priv_key", level)
    if connection.get("context"):
        auth["context_name"] = connection["context"]
    return auth


def configuration(connections: t.Mapping[str, t.Mapping[str, t.Any]], split: bool = True) -> dict[str, t.Any]:
    """Return the configuration for the kinds in ``connections``; raise ValueError.

    From release 0.23 on, the exporter separates credentials from modules. Set ``split`` to false for older releases.
    """
    unknown = sorted(set(connections) - set(MODULES))
    if unknown:
        raise ValueError(
            f"Cannot configure {', '.join(unknown)}: the kind is unknown. Choose from {', '.join(MODULES)}."
        )
    auths = {kind: credentials(connection) for kind, connection in sorted(connections.items())}
    if split:
        return {"auths": auths, "modules": {kind: module(kind) for kind in auths}}
    found: dict[str, t.Any] = {}
    for kind, auth in auths.items():
        version = auth.pop("version")
        found[kind] = {**module(kind), "version": version, "auth": auth}
    return found


def _required(connection: t.Mapping[str, t.Any], name: str, mode: str) -> str:
    if not connection.get(name):
        raise ValueError(f"Cannot configure SNMP with {mode}: '{name}' is missing. Set it.")
    return str(connection[name])


def _dotted(oid: Oid) -> str:
    return ".".join(str(number) for number in oid)


def _help(column: Column) -> str:
    description = column.unit
    if column.per_unit != 1:
        description = f"1/{column.per_unit} {column.unit}"
    if column.names:
        description = ", ".join(f"{number} {name}" for name, number in column.names.items())
    return _dotted(column.oid) + (f" ({description})" if description else "")


def _metric(column: Column, type_: str, rows: Rows) -> dict[str, t.Any]:
    index = {"labelname": rows.index, "type": "gauge"}
    metric = {"name": column.name, "oid": _dotted(column.oid), "type": type_, "help": _help(column), "indexes": [index]}
    lookups = [
        {
            "labels": [rows.index],
            "labelname": label,
            "oid": _dotted(column.oid),
            "type": "DisplayString" if column.syntax is Syntax.TEXT else "gauge",
        }
        for label, column in rows.labels
    ]
    return {**metric, "lookups": lookups} if lookups else metric
