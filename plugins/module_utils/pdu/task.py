# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module pdu: read the managed settings of a PDU, and write those that differ.

Modules of this family: ``mib`` declares the SNMP objects, ``tables`` and ``resources`` map them to objects,
and ``session`` sends single requests. ``client`` combines variables into few of them, and ``writer`` writes and
verifies. A new column of ``mib`` must match PowerNet-MIB.
"""

from __future__ import annotations

import typing as t

from ..reconcile import Object, converge, plan
from ..runner import Task
from .client import PduClient
from .options import CONFIG_OPTIONS, CONSTRAINTS, PDU, Run
from .resources import FAMILIES, RECEIVER, ROWS, Config, base_oids, desired_objects, parse_config, row_counts
from .session import Oid, Value
from .writer import Writer


def fetch_config(client: PduClient, plurals: t.Collection[str]) -> Config:
    """Return the configuration of a PDU, with the rows of the kinds in ``plurals``. Raises UserError."""
    address = client.connection.address
    values: dict[Oid, Value] = client.get(base_oids())
    counts = row_counts(values, address)
    oids = [oid for plural in plurals for oid in ROWS[plural].oids(counts[plural])]
    if oids:
        values.update(client.get(oids))
    return parse_config(values, plurals, address)


def _pdu(run: Run) -> Object:
    params = run.params
    if params["state"] == "gathered":
        return {"changed": False, "gathered": fetch_config(run.transport, ROWS).gathered()}
    config = params["config"]
    actual = fetch_config(run.transport, [plural for plural in ROWS if config[plural]])
    objects = desired_objects(config, actual)
    steps = [step for f in FAMILIES for step in plan(f, objects[f.plural], actual.objects[f.plural])]
    report = converge(steps, Writer(run.transport, actual, params["wait_timeout"]), run.check_mode, run.diff)
    result = report.result()
    if report.diff is not None:
        result["diff"] = _without_secrets(report.diff)
    return result


def _without_secrets(diff: dict[str, t.Any]) -> dict[str, t.Any]:
    """Replace communities by words that only show whether they change."""
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
