# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task of the module vipu_agent_drain: move the partitions off an IPU-Machine."""

from __future__ import annotations

from ...reconcile import Object
from ...runner import Task
from ..convergence import call_after_write
from ..options import VIPU, Run
from ..waiting import WAIT_OPTIONS, wait_active


def _drain(run: Run) -> Object:
    params = run.params
    reply = run.transport.drain_agent(params["id"], params["service_reason"] or "", params["force"], run.check_mode)
    moving = [item["id"] for item in reply["partitions"] if item["moves"]]
    result: Object = {
        "changed": reply["changed"],
        "partitions": reply["partitions"],
        "remaining": [item for item in reply["partitions"] if not item["moves"]],
    }
    if run.diff:
        # All partitions are on the machine before. The reply does not have their other machines.
        result["diff"] = {
            "before": {"partitions": [item["id"] for item in reply["partitions"]]},
            "after": {"partitions": [item["id"] for item in result["remaining"]]},
        }
    if moving and params["wait"] and not run.check_mode:
        call_after_write(True, lambda: wait_active(run, moving))
    return result


VIPU_AGENT_DRAIN = Task(
    VIPU,
    {
        "id": {"type": "str", "required": True},
        "service_reason": {"type": "str"},
        "force": {"type": "bool", "default": False},
        **WAIT_OPTIONS,
    },
    _drain,
)
