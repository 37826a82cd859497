# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module pdu does: it reads what it is asked about, and writes what differs."""

from __future__ import annotations

import typing as t

from ..reconcile import Object, converge, plan
from ..runner import Task
from .client import Agent, Oid, Value
from .options import CONFIG_OPTIONS, CONSTRAINTS, PDU, Run
from .resources import FAMILIES, RECEIVER, ROWS, Config, head_oids, read, sizes, wanted
from .writing import Writer


def look(agent: Agent, plurals: t.Collection[str]) -> Config:
    """The configuration of a PDU, with the rows of the kinds named by ``plurals``. Raises SentenceError."""
    address = agent.connection.address
    values: dict[Oid, Value] = agent.get(head_oids())
    counts = sizes(values, address)
    oids = [oid for plural in plurals for oid in ROWS[plural].oids(counts[plural])]
    if oids:
        values.update(agent.get(oids))
    return read(values, plurals, address)


def _pdu(run: Run) -> Object:
    params = run.params
    if params["state"] == "gathered":
        return {"changed": False, "gathered": look(run.transport, ROWS).gathered()}
    config = params["config"]
    there = look(run.transport, [plural for plural in ROWS if config[plural]])
    objects = wanted(config, there)
    steps = [step for f in FAMILIES for step in plan(f, objects[f.plural], there.objects[f.plural])]
    report = converge(steps, Writer(run.transport, there, params["wait_timeout"]), run.check_mode, run.diff)
    result = report.result()
    if report.diff is not None:
        result["diff"] = _without_secrets(report.diff)
    return result


def _without_secrets(diff: dict[str, t.Any]) -> dict[str, t.Any]:
    """A community is told to be another one, and not which."""
    before, after = (diff[side].get(RECEIVER.plural, {}) for side in ("before", "after"))
    for address, item in after.items():
        old = before.get(address, {})
        if "community" in item:
            changed = old.get("community") != item["community"]
            item["community"] = "as given" if changed else "unchanged"
        if "community" in old:
            old["community"] = "another" if item.get("community") == "as given" else "unchanged"
    return diff


PDU_TASK = Task(
    PDU,
    {
        "config": {"type": "dict", "options": CONFIG_OPTIONS},
        "state": {"type": "str", "choices": ["merged", "gathered"], "default": "merged"},
        "wait_timeout": {"type": "float", "default": 120.0},
    },
    _pdu,
    {"required_if": [*CONSTRAINTS["required_if"], ("state", "merged", ("config",))]},
)
