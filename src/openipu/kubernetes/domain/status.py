# SPDX-License-Identifier: GPL-3.0-or-later
"""Status of a job: its conditions in the order in which they occurred, as ``kubectl describe`` prints them.

When a condition becomes true, the earlier ones become false and keep their time, reason and message.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from enum import Enum
from typing import Any

from openipu.kubernetes.domain.names import Name

Status = dict[str, Any]

INVALID = "IPUJobInvalid"  # reason of a failure that ends when the specification is corrected
UNSCHEDULABLE = "IPUJobUnschedulable"  # reason of a pending job for which there is no V-IPU controller
DENIED = "IPUJobPodsDenied"  # reason of a pending job whose pods a quota or a policy denies

_FIRST_BACK_OFF, _LAST_BACK_OFF = 10.0, 300.0  # seconds before a restart


class State(Enum):
    """State of a job, and type of its last condition."""

    PENDING = "Pending"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    SUSPENDED = "Suspended"


_MESSAGES = {
    State.PENDING: "IPUJob {job} is waiting for resources to be ready.",
    State.RUNNING: "IPUJob {job} is running.",
    State.RESTARTING: "IPUJob {job} is restarting: {cause}",
    State.SUCCEEDED: "IPUJob {job} successfully completed.",
    State.FAILED: "IPUJob {job} has failed: {cause}",
    State.SUSPENDED: "IPUJob {job} is suspended.",
}


def timestamp(seconds: float) -> str:
    """Return a Unix time as Kubernetes writes it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(timestamp: str) -> float:
    """Return the Unix time of a timestamp of Kubernetes."""
    return datetime.datetime.fromisoformat(timestamp).timestamp()


def condition(status: Mapping[str, Any], state: State) -> Mapping[str, Any] | None:
    """Return the condition of a state, None if the job has not been in it."""
    return next((each for each in status.get("conditions") or [] if each["type"] == state.value), None)


def state(status: Mapping[str, Any]) -> State | None:
    """Return the present state, None for a new job."""
    for each in status.get("conditions") or []:
        if each["status"] == "True":
            return State(each["type"])
    return None


def is_finished(status: Mapping[str, Any]) -> bool:
    """Return whether the job has ended and never runs again."""
    last = state(status)
    if last is State.FAILED:
        failed = condition(status, State.FAILED)
        return failed is not None and failed["reason"] != INVALID
    return last is State.SUCCEEDED


def entered(
    status: Mapping[str, Any], state: State, job: Name, now: float, cause: str = "", reason: str = ""
) -> Status:
    """Return the status of a job that enters a state. ``cause``: a sentence for restarts and failures."""
    time = timestamp(now)
    message = _MESSAGES[state].format(job="/".join(job), cause=cause)
    earlier = [_ended(each) for each in status.get("conditions") or [] if each["type"] != state.value]
    new = {
        "type": state.value,
        "status": "True",
        "reason": reason or f"IPUJob{state.value}",
        "message": message,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
    }
    found = {**status, "conditions": [*earlier, new], "launcherStatus": state.value, "lastMessage": message}
    if state in (State.SUCCEEDED, State.FAILED):
        found["completionTime"] = time
    else:
        found.pop("completionTime", None)
    return found


def explained(status: Status, job: Name, now: float, reason: str = "", message: str = "") -> Status:
    """Return the status of a pending job with the reason why it cannot run, or with the usual one.

    An empty message with a reason keeps the present one. Other states stay unchanged.
    """
    present = condition(status, State.PENDING)
    if present is None or present["status"] != "True":
        return status
    usual = _MESSAGES[State.PENDING].format(job="/".join(job))
    new = {"reason": reason or f"IPUJob{State.PENDING.value}", "message": message or usual}
    if reason and not message:
        new["message"] = present["message"]
    if {**present, **new} == present:
        return status
    conditions = [
        {**each, **new, "lastUpdateTime": timestamp(now)} if each is present else each for each in status["conditions"]
    ]
    return {**status, "conditions": conditions, "lastMessage": new["message"]}


def is_denied(status: Mapping[str, Any]) -> bool:
    """Return whether the pods of a pending job were denied when it last had IPUs."""
    return _pending_reason(status) == DENIED


def is_held_up(status: Mapping[str, Any]) -> bool:
    """Return whether a pending job cannot run at present, so that it comes before no other one."""
    return _pending_reason(status) in (UNSCHEDULABLE, DENIED)


def waits(job: Mapping[str, Any]) -> bool:
    """Return whether a job waits for IPUs that it can receive."""
    spec, found = job["spec"], job.get("status") or {}
    if job["metadata"].get("deletionTimestamp") or spec.get("suspend") or spec.get("jobInstances") == 0:
        return False
    is_pending = state(found) is State.PENDING and not is_held_up(found)
    return is_pending and not found.get("iPUPartitionCreated")


def back_off(restarts: int) -> float:
    """Return the seconds between the end of a job and its n-th restart: 10, 20, 40 … up to 300."""
    return float(min(_FIRST_BACK_OFF * 2 ** min(restarts - 1, 16), _LAST_BACK_OFF))


def _pending_reason(status: Mapping[str, Any]) -> str:
    present = condition(status, State.PENDING)
    return "" if present is None or present["status"] != "True" else str(present["reason"])


def _ended(condition: Mapping[str, Any]) -> dict[str, Any]:
    return {**condition, "status": "False"}
