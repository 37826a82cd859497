# SPDX-License-Identifier: GPL-3.0-or-later
"""A job during its reconciliation, with its new status and its new events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from openipu.kubernetes.cluster.client import Object
from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.plan import Instance
from openipu.kubernetes.domain.status import State, Status


@dataclass(slots=True)
class JobView:
    """A job as the last step has left it. ``status``: the new one, written at the end."""

    thing: Object
    job: Job
    status: Status
    pods: list[Object]
    instances: Sequence[Instance] = ()
    events: list[tuple[str, str, bool]] = field(default_factory=list)

    @property
    def restarts(self) -> int:
        """Number of restarts."""
        return int(self.status.get("restartCount", 0))

    def enter(self, state: State, cause: str = "", reason: str = "") -> None:
        """Enter a state with an event, unless the job is in it."""
        if statuses.state(self.status) is state and state is not State.RESTARTING:
            return
        self.status = statuses.entered(self.status, state, self.job.name, time.time(), cause, reason)
        last = self.status["conditions"][-1]
        self.add_event(last["reason"], last["message"], warning=state in (State.FAILED, State.RESTARTING))

    def add_event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Add an event, which is written after the status."""
        self.events.append((reason, message, warning))

    def explain(self, reason: str = "", message: str = "") -> None:
        """Write why a pending job cannot run at present, or the usual reason, into its condition."""
        before, self.status = self.status, statuses.explained(self.status, self.job.name, time.time(), reason, message)
        if reason == statuses.UNSCHEDULABLE and self.status is not before:
            self.add_event(reason, message, warning=True)
