# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_partition: create, remove or reset a partition."""

from __future__ import annotations

from ...reconcile import Object
from ...runner import Task, TaskError
from ..convergence import FORCE, RECREATE, call_after_write, converge_object, object_result, single_result
from ..options import VIPU, Run
from ..resources import OPTIONS, PARTITION
from ..waiting import WAIT_OPTIONS, wait_active


def _partition(run: Run) -> Object:
    if run.params["state"] == "reset":
        return _reset(run)
    step, report = converge_object(run, PARTITION)
    if step and step.desired and run.params["wait"] and not run.check_mode:
        seen = [step.before] if step.before and not report.changed else None
        item = call_after_write(report.changed, lambda: wait_active(run, [step.key], seen)[step.key])
        return object_result(report, partition=item)
    return call_after_write(report.changed, lambda: single_result(run, PARTITION, step, report))


def _reset(run: Run) -> Object:
    """Reset a partition. A reset is not idempotent: every run reports a change."""
    id = run.params["id"]
    before = next((item for item in run.transport.read("partition") if item["id"] == id), None)
    if before is None:
        raise TaskError("Cannot reset partition '%s': it does not exist. Create it with state present." % id)
    result: Object = {"changed": True, "partition": before}
    if run.diff:
        result["diff"] = {"before": {"state": before.get("state")}, "after": {"state": "reset"}}
    if not run.check_mode:
        run.transport.reset_partition(id, bool(run.params["relocatable"]))
        if run.params["wait"]:
            result["partition"] = call_after_write(True, lambda: wait_active(run, [id])[id])
    return result


VIPU_PARTITION = Task(
    VIPU,
    {
        **OPTIONS["partition"],
        "state": {"type": "str", "choices": ["present", "absent", "reset"], "default": "present"},
        **WAIT_OPTIONS,
        **FORCE,
        **RECREATE,
    },
    _partition,
    {
        "required_if": [("state", "present", ("size", "ipus"), True)],
        "required_by": {"ipus": "cluster"},
    },
)
