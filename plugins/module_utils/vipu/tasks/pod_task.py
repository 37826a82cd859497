# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_pod: converge all objects of a POD in one batch."""

from __future__ import annotations

import typing as t

from ...reconcile import Family, Object, Step, empty_result, plan
from ...runner import Task, TaskError
from ..convergence import FORCE, RECREATE, apply_plan, call_after_write, with_details
from ..options import VIPU, Run
from ..resources import AGENT, ALLOCATION, CLUSTER, OPTIONS, PARTITION, with_dependents
from ..waiting import WAIT_OPTIONS, wait_active

_LISTED = (AGENT, CLUSTER, ALLOCATION, PARTITION)


def _pod(run: Run) -> Object:
    """Converge all managed kinds with one read per kind, one plan and one batch."""
    params = run.params
    for name in params["prune"]:
        if params[name] is None:  # omitted, perhaps by a template: must not remove everything
            raise TaskError(
                "Cannot prune %s: the list of %s to keep is missing. Set %s; an empty list removes all."
                % (name, name, name)
            )
    managed = [f for f in _LISTED if params[f.plural] is not None]
    seen: dict[str, list[Object]] = {}

    def make_plan() -> list[Step]:
        seen.update(run.transport.read_all([family.kind for family in managed]))
        steps: list[Step] = []
        for family in managed:
            prune: t.Callable[[Object], bool] | None = (lambda item: True) if family.plural in params["prune"] else None
            desired = params[family.plural] or []
            seen[family.kind] = with_details(run, family, desired, seen[family.kind])
            steps += plan(family, desired, seen[family.kind], prune=prune, recreate=params["recreate"])
        return with_dependents(steps, seen) if params["force"] else steps

    _steps, report = apply_plan(run, make_plan, params["force"], params["validate"])
    result = {**{family.plural: empty_result() for family in managed}, **report.result()}
    if params["wait"] and params["partitions"] and not run.check_mode:
        ids = [item["id"] for item in params["partitions"]]
        unchanged = None if report.changed else seen[PARTITION.kind]
        active = call_after_write(report.changed, lambda: wait_active(run, ids, unchanged))
        result["partition_states"] = {id: active[id]["state"] for id in ids}
    return result


def _elements(family: Family) -> dict[str, t.Any]:
    """Return the options of a kind as elements of a list. The controller checks which ones a new object requires."""
    return {"type": "list", "elements": "dict", "options": OPTIONS[family.kind]}


VIPU_POD = Task(
    VIPU,
    {
        **{family.plural: _elements(family) for family in _LISTED},
        "prune": {"type": "list", "elements": "str", "choices": [f.plural for f in _LISTED], "default": []},
        "validate": {"type": "bool", "default": True},
        **WAIT_OPTIONS,
        **FORCE,
        **RECREATE,
    },
    _pod,
)
