# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module pdu_info: read the load of a PDU, and check whether more load fits."""

from __future__ import annotations

import dataclasses

from ..reconcile import Object
from ..runner import Task, TaskError
from . import tables
from .client import PduClient
from .headroom import Circuit, Feed, Load, excess_message, excesses, remaining_load
from .options import CONSTRAINTS, PDU, Run
from .resources import base_oids, display_name, row_counts
from .session import Oid, Value

_ROWS = {"phases": tables.PHASE_LOADS, "banks": tables.BANK_LOADS, "outlets": tables.OUTLETS}
_ALARMS = {"low_load": "below its low_load", "near_overload": "near overload", "overload": "in overload"}


def _fetch(client: PduClient) -> Object:
    """Return identity, settings and loads of a PDU. Raises UserError."""
    values: dict[Oid, Value] = client.get([*base_oids(), *tables.oids(tables.DEVICE_LOAD)])
    counts = row_counts(values, client.connection.address)
    values.update(client.get([oid for name, rows in _ROWS.items() for oid in rows.oids(counts[name])]))
    identity = tables.decode_row(tables.IDENTITY, values)
    identity["power_rating"] = tables.kilowatts(identity.get("power_rating"))
    settings = tables.decode_row(tables.SETTINGS, values)
    return {
        "pdu": {name: settings.get(name, "") for name in ("name", "location", "contact")} | identity,
        "device": tables.decode_row(tables.DEVICE_LOAD, values),
        **{name: rows.objects(values, counts[name]) for name, rows in _ROWS.items()},
    }


def feed(readings: Object) -> Feed:
    """Return the circuits of a PDU, from its readings."""
    voltages = {item["number"]: item.get("voltage") for item in readings["phases"]}
    breaker = readings["pdu"].get("phase_breaker")
    circuits = [
        Circuit("phase", item["number"], item.get("current"), breaker or None, item.get("voltage"))
        for item in readings["phases"]
    ]
    for item in readings["banks"]:
        phases = tables.PHASES_OF.get(item.get("wiring"), ())
        voltage = voltages.get(phases[0]) if phases else None
        circuits.append(
            Circuit("bank", item["number"], item.get("current"), item.get("breaker") or None, voltage, phases)
        )
    return Feed(readings["device"].get("power"), readings["pdu"].get("power_rating"), tuple(circuits))


def alarms(readings: Object) -> list[Object]:
    """Return the active alarms of the PDU, each with a message."""
    found = []
    device = readings["device"]
    for kind, item in (
        ("device", device),
        *(("phase", item) for item in readings["phases"]),
        *(("bank", item) for item in readings["banks"]),
    ):
        state = item.get("load_state")
        if state in _ALARMS:
            name = "The whole PDU" if kind == "device" else "%s %d" % (kind.capitalize(), item["number"])
            load = "%g A" % item["current"] if "current" in item else "%g kW" % item.get("power", 0)
            reason = "%s is %s, at %s." % (name, _ALARMS[state], load)
            found.append({"kind": kind, "number": item.get("number"), "state": state, "reason": reason})
    if device.get("supply_alarm") == "alarm":
        reason = "A power supply of the PDU has failed. Repair or replace it."
        found.append({"kind": "supply", "number": None, "state": "alarm", "reason": reason})
    return found


def _report(readings: Object, present: Feed, share: float) -> Object:
    """Return the readings as results of the module."""
    circuits = {(circuit.kind, circuit.number): circuit for circuit in present.circuits}

    def with_headroom(kind: str, item: Object) -> Object:
        circuit = circuits[kind, item["number"]]
        shown = {name: value for name, value in item.items() if name not in ("row", "wiring")}
        more = {"phases": list(circuit.phases)} if kind == "bank" else {}
        return {
            **shown,
            **more,
            "breaker": circuit.breaker,
            "headroom": _rounded(circuit.headroom(share), 1),
            "headroom_power": _rounded(circuit.headroom_power(share), 2),
        }

    rating = present.rating
    headroom_power = None if rating is None or present.power is None else rating * share - present.power
    device = {name: value for name, value in readings["device"].items() if name != "supply_alarm"}
    return {
        "pdu": readings["pdu"],
        "device": {**device, "rating": rating, "headroom_power": _rounded(headroom_power, 2)},
        "phases": [with_headroom("phase", item) for item in readings["phases"]],
        "banks": [with_headroom("bank", item) for item in readings["banks"]],
        "outlets": [
            {name: item.get(name) for name in ("number", "name", "state", "bank")} for item in readings["outlets"]
        ],
        "alarms": alarms(readings),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _pdu_info(run: Run) -> Object:
    params = run.params
    share = params["breaker_share"]
    if not 0 < share <= 1:
        raise TaskError("Cannot use breaker_share %g: set more than 0, and at most 1." % share)
    readings = _fetch(run.transport)
    present = feed(readings)
    result: Object = {"changed": False, **_report(readings, present, share), "excesses": [], "fits": None}
    loads = [Load(**item) for item in params["added_loads"] or ()]
    if params["expected_power"] is not None:
        loads.append(remaining_load(present, params["expected_power"]))
    if loads:
        found = excesses(present, loads, share)
        name = display_name(readings["pdu"]["name"], readings["pdu"].get("model"), run.transport.connection.address)
        result["excesses"] = [{**dataclasses.asdict(item), "reason": item.message} for item in found]
        result["fits"] = not found
        result["excess_message"] = excess_message(name, loads, found) if found else ""
        if found and params["fail_on_excess"]:
            raise TaskError(result["excess_message"])  # Ansible prints the result of a failed task
    return result


PDU_INFO = Task(
    PDU,
    {
        "added_loads": {
            "type": "list",
            "elements": "dict",
            "options": {
                "power": {"type": "float", "required": True},
                "phase": {"type": "int"},
                "bank": {"type": "int"},
            },
            "mutually_exclusive": [("phase", "bank")],
        },
        "expected_power": {"type": "float"},
        "breaker_share": {"type": "float", "default": 1.0},
        "fail_on_excess": {"type": "bool", "default": True},
    },
    _pdu_info,
    {**CONSTRAINTS, "mutually_exclusive": [("added_loads", "expected_power")]},
)
