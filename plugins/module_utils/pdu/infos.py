# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module pdu_info does: it looks at the load, and says whether more of it may be powered."""

from __future__ import annotations

import dataclasses

from ..reconcile import Object
from ..runner import Task, TaskError
from . import tables
from .client import Agent, Oid, Value
from .headroom import Circuit, Feed, Load, excesses, refusal, up_to
from .options import CONSTRAINTS, PDU, Run
from .resources import called, head_oids, sizes

_ROWS = {"phases": tables.PHASE_LOADS, "banks": tables.BANK_LOADS, "outlets": tables.OUTLETS}
_ALARMS = {"low_load": "less than its low_load", "near_overload": "near overload", "overload": "in overload"}


def _look(agent: Agent) -> Object:
    """Everything as it is. Raises SentenceError."""
    values: dict[Oid, Value] = agent.get([*head_oids(), *tables.oids(tables.DEVICE_LOAD)])
    counts = sizes(values, agent.connection.address)
    values.update(agent.get([oid for name, rows in _ROWS.items() for oid in rows.oids(counts[name])]))
    identity = tables.told(tables.IDENTITY, values)
    identity["power_rating"] = tables.kilowatts(identity.get("power_rating"))
    settings = tables.told(tables.SETTINGS, values)
    return {
        "pdu": {name: settings.get(name, "") for name in ("name", "location", "contact")} | identity,
        "device": tables.told(tables.DEVICE_LOAD, values),
        **{name: rows.objects(values, counts[name]) for name, rows in _ROWS.items()},
    }


def feed(seen: Object) -> Feed:
    """What was seen, as its breakers see it."""
    voltages = {item["number"]: item.get("voltage") for item in seen["phases"]}
    breaker = seen["pdu"].get("phase_breaker")
    circuits = [
        Circuit("phase", item["number"], item.get("current"), breaker or None, item.get("voltage"))
        for item in seen["phases"]
    ]
    for item in seen["banks"]:
        phases = tables.PHASES_OF.get(item.get("wiring"), ())
        voltage = voltages.get(phases[0]) if phases else None
        circuits.append(
            Circuit("bank", item["number"], item.get("current"), item.get("breaker") or None, voltage, phases)
        )
    return Feed(seen["device"].get("power"), seen["pdu"].get("power_rating"), tuple(circuits))


def alarms(seen: Object) -> list[Object]:
    """What the PDU complains of, each with a sentence."""
    found = []
    device = seen["device"]
    for kind, item in (
        ("device", device),
        *(("phase", item) for item in seen["phases"]),
        *(("bank", item) for item in seen["banks"]),
    ):
        state = item.get("load_state")
        if state in _ALARMS:
            name = "The whole PDU" if kind == "device" else "%s %d" % (kind.capitalize(), item["number"])
            load = "%g A" % item["current"] if "current" in item else "%g kW" % item.get("power", 0)
            sentence = "%s is %s, at %s." % (name, _ALARMS[state], load)
            found.append({"kind": kind, "number": item.get("number"), "state": state, "reason": sentence})
    if device.get("supply_alarm") == "alarm":
        reason = "A power supply of the PDU itself has failed: have it repaired."
        found.append({"kind": "supply", "number": None, "state": "alarm", "reason": reason})
    return found


def _told(seen: Object, present: Feed, share: float) -> Object:
    """What was seen, as the module returns it."""
    rooms = {(circuit.kind, circuit.number): circuit for circuit in present.circuits}

    def with_room(kind: str, item: Object) -> Object:
        circuit = rooms[kind, item["number"]]
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
    room = None if rating is None or present.power is None else rating * share - present.power
    device = {name: value for name, value in seen["device"].items() if name != "supply_alarm"}
    return {
        "pdu": seen["pdu"],
        "device": {**device, "rating": rating, "headroom_power": _rounded(room, 2)},
        "phases": [with_room("phase", item) for item in seen["phases"]],
        "banks": [with_room("bank", item) for item in seen["banks"]],
        "outlets": [{name: item.get(name) for name in ("number", "name", "state", "bank")} for item in seen["outlets"]],
        "alarms": alarms(seen),
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _pdu_info(run: Run) -> Object:
    params = run.params
    share = params["breaker_share"]
    if not 0 < share <= 1:
        raise TaskError("A breaker_share of %g is none: give more than 0, and at most 1." % share)
    seen = _look(run.transport)
    present = feed(seen)
    result: Object = {"changed": False, **_told(seen, present, share), "excesses": [], "fits": None}
    loads = [Load(**item) for item in params["added_loads"] or ()]
    if params["expected_power"] is not None:
        loads.append(up_to(present, params["expected_power"]))
    if loads:
        found = excesses(present, loads, share)
        name = called(seen["pdu"]["name"], seen["pdu"].get("model"), run.transport.connection.address)
        result["excesses"] = [{**dataclasses.asdict(item), "reason": item.sentence} for item in found]
        result["fits"] = not found
        result["refusal"] = refusal(name, loads, found) if found else ""
        if found and params["fail_on_excess"]:
            raise TaskError(result["refusal"], **result)
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
