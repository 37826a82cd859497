# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for partitions to become ACTIVE. It lists all partitions, so the number of calls is constant."""

from __future__ import annotations

import time
import typing as t

from ..reconcile import Object
from ..runner import TaskError
from .options import Run

_SETTLED = ("ACTIVE", "ERROR", "REMOVED")
_GONE: Object = {"state": "REMOVED", "operation": None, "errors": []}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 1.0  # seconds; an idle rack needs milliseconds

WAIT_OPTIONS: dict[str, t.Any] = {
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "float", "default": 120.0},
}


def wait_active(run: Run, ids: t.Sequence[str], seen: list[Object] | None = None) -> dict[str, Object]:
    """Wait until partitions are ACTIVE and return them by id.

    ``seen`` are partitions that were just read and not changed since. Raises TaskError with the last state of
    the partitions that are not ACTIVE after ``wait_timeout`` seconds, or earlier when none of them can become so.
    """
    timeout = run.params["wait_timeout"]
    deadline, pause = time.monotonic() + timeout, _FIRST_PAUSE
    while True:
        found = {item["id"]: item for item in (run.transport.read("partition") if seen is None else seen)}
        behind = [id for id in ids if _state(found, id) != "ACTIVE"]
        if not behind:
            return {id: found[id] for id in ids}
        left = deadline - time.monotonic()
        if left <= 0 or all(_state(found, id) in _SETTLED for id in behind):
            statuses = run.transport.partition_statuses(behind)
            last = {id: statuses.get(id, {"id": id, **_GONE}) for id in behind}
            # Between the two calls a partition may have been reset or become ACTIVE.
            if left <= 0 or all(status["state"] in ("ERROR", "REMOVED") for status in last.values()):
                messages = [_message(status, timeout) for status in last.values()]
                raise TaskError(" ".join(messages), partitions=last)
        time.sleep(min(pause, left))
        pause, seen = min(pause * 1.5, _LONGEST_PAUSE), None


def _state(found: dict[str, Object], id: str) -> t.Any:
    return found.get(id, _GONE).get("state")


def _message(status: Object, timeout: float) -> str:
    if status["state"] == "ERROR":
        reason = " ".join(status["errors"]) or (
            "the controller reported no cause."
            if status["operation"]
            else "the command line does not report the cause; check 'vipu get partition %s' and the log of the "
            "controller." % status["id"]
        )
        return "Cannot activate partition '%s': it is in state ERROR: %s Fix the cause and use state reset." % (
            status["id"],
            reason,
        )
    if status["state"] == "REMOVED":
        return "Cannot activate partition '%s': another client removed it. Run the task again." % status["id"]
    operation = " (%s)" % status["operation"].lower() if status["operation"] else ""
    return (
        "Cannot activate partition '%s': it is still %s%s after %g seconds. Check the controller, or increase "
        "wait_timeout."
        % (
            status["id"],
            "not ACTIVE" if status["state"] == "ACTIVE" else status["state"],
            operation,
            timeout,
        )
    )
