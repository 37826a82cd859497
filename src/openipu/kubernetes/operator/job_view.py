# SPDX-License-Identifier: GPL-3.0-or-later
"""A job during its reconciliation, with its new status and its new events."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from openipu.kubernetes.cluster.client import Object
from openipu.kubernetes.domain import plan, progress
from openipu.kubernetes.domain import status as statuses
from openipu.kubernetes.domain.job import Job
from openipu.kubernetes.domain.plan import Instance, Plan
from openipu.kubernetes.domain.progress import Progress, Stage
from openipu.kubernetes.domain.status import State, Status


@dataclass(slots=True)
class JobView:
    """A job as the last step has left it. ``status``: the new one, written at the end.

    ``leaving``: instances with pods that do not count any more, for example because they end.
    """

    thing: Object
    job: Job
    status: Status
    pods: list[Object]
    instances: Sequence[Instance] = ()
    leaving: Set[int] = frozenset()
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

    def compare(self) -> Plan:
        """Return the plan for the pods, and note the state of the instances."""
        found = plan.make(self.job, self.pods, self.restarts)
        counted = {each["metadata"]["uid"] for instance in found.instances for each in instance.pods}
        self.instances = found.instances
        self.leaving = {plan.instance_of(each) for each in self.pods if each["metadata"]["uid"] not in counted}
        return found

    def counted(self, is_reserved: Callable[[int], bool]) -> Status:
        """Return the status with the present counts. ``is_reserved``: whether an instance has a partition."""
        instances = 0 if self.job.suspended else self.job.instances
        stages = [each.progress.stage for each in self.instances]
        return {
            **self.status,
            "observedGeneration": self.job.generation,
            "restartCount": self.restarts,
            "iPUPartitionCreated": instances > 0 and all(map(is_reserved, range(instances))),
            "workersStatus": progress.worker_counts(self.pods),
            "desiredReplicas": instances,
            "currentReplicas": sum(stage in (Stage.RUNNING, Stage.SUCCEEDED) for stage in stages),
        }

    def add_event(self, reason: str, message: str, *, warning: bool = False) -> None:
        """Add an event, which is written after the status."""
        self.events.append((reason, message, warning))

    def explain(self, reason: str = "", message: str = "") -> None:
        """Write why a pending job cannot run at present, or the usual reason, into its condition."""
        before, self.status = self.status, statuses.explained(self.status, self.job.name, time.time(), reason, message)
        if reason == statuses.UNSCHEDULABLE and self.status is not before:
            self.add_event(reason, message, warning=True)

    def restart_or_end(self, ended: Progress) -> None:
        """Count a restart of the job after the end of an attempt, or enter its final state."""
        policy, count = self.job.restarts, self.restarts
        if policy.permitted(ended.exit_code, count):
            self.status["restartCount"] = count + 1
            cause = ended.cause or "it has ended with success."
            self.enter(State.RESTARTING, f"restart {count + 1} of {policy.limit}, because {cause}")
        elif ended.stage is Stage.SUCCEEDED:
            self.enter(State.SUCCEEDED)
        else:
            restarts = f" It was restarted {count} times." if count > 1 else " It was restarted once." if count else ""
            self.enter(State.FAILED, ended.cause + restarts)

    def restart_delay(self, scale: float) -> float:
        """Return the seconds until the next attempt may start, 0 if it may start now.

        ``scale``: factor of the back-off.
        """
        restarting = statuses.condition(self.status, State.RESTARTING)
        if restarting is None or restarting["status"] != "True":
            return 0.0
        pause = statuses.back_off(self.restarts) * scale
        return max(0.0, statuses.seconds(restarting["lastTransitionTime"]) + pause - time.time())
