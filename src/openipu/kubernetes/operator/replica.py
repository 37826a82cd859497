# SPDX-License-Identifier: GPL-3.0-or-later
"""State of a replica of the operator, which its probes and metrics read."""

from __future__ import annotations

from dataclasses import dataclass

from openipu.kubernetes.cluster.lease import Election
from openipu.kubernetes.operator.controller import JobController
from openipu.kubernetes.operator.pod_controller import PodController


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a healthy replica, in seconds."""

    election: float = 60.0  # between attempts; each ends within 10 s, and the next one follows after 2 s
    stalled: float = 900.0  # of a queue; a request to the proxy ends within 240 s, and some steps make several
    unanswered: float = 30.0  # of attempts, for a standby that can take over


@dataclass(slots=True)
class Replica:
    """A candidate of the election. ``controller`` of jobs, and ``pods``: while it leads."""

    election: Election
    controller: JobController | None = None
    pods: PodController | None = None
    limits: Limits = Limits()

    def stuck(self) -> str:
        """Return why only a restart helps, empty if none is needed.

        An API server, a proxy or a V-IPU controller that does not respond is no reason: a restart does not help then.
        """
        if self.election.idle_seconds > self.limits.election:
            return f"The election has made no attempt for {self.election.idle_seconds:.0f} s."
        controllers = [each for each in (self.controller, self.pods) if each is not None]
        for name, queue in ((name, queue) for each in controllers for name, queue in each.queues.items()):
            if queue.stalled_seconds > self.limits.stalled:
                return f"No handler of the queue {name} has started or ended for {queue.stalled_seconds:.0f} s."
        return ""

    def unready(self) -> str:
        """Return why this replica neither leads nor can take over, empty if it does or can."""
        if self.controller is not None:
            return "" if self.controller.synced else "The caches of jobs and pods are not complete yet."
        if self.election.unanswered_seconds > self.limits.unanswered:
            return f"The API server has not answered within {self.limits.unanswered:g} s. This replica cannot lead."
        return ""
