# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that wait for IPUs. In each namespace, the oldest job is first, and no later one receives IPUs before it.

So a small job never overtakes a large one of its namespace. Namespaces compete: the first job of each may request IPUs.
When one of them has waited for ``PATIENCE_SECONDS``, no later job of another namespace may request IPUs before it has
its own. So large jobs start eventually.

A job that cannot run at present, for example because no V-IPU controller is large enough, is not schedulable. It blocks
no other job. It keeps its place and is tried in its turn, so it is first again when it can run.
"""

from __future__ import annotations

import bisect
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from openipu.kubernetes.domain.names import Name

PATIENCE_SECONDS = 600.0


@dataclass(frozen=True, slots=True, order=True)
class WaitingJob:
    """A job that waits. The order is that of creation; names decide between jobs of the same second."""

    created: str  # timestamp
    name: Name
    since: float = field(default=0.0, compare=False)  # when it began to wait


class JobQueue:
    """All waiting jobs. Positions count schedulable jobs only."""

    def __init__(self) -> None:
        self._jobs: dict[Name, WaitingJob] = {}
        self._schedulable: dict[str, list[WaitingJob]] = {}  # by namespace, in order
        self._others: dict[str, list[WaitingJob]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, name: object) -> bool:
        return name in self._jobs

    @property
    def unschedulable(self) -> int:
        """Number of jobs that cannot run at present."""
        return sum(map(len, self._others.values()))

    def add(self, name: Name, created: str, now: float) -> None:
        """Add a schedulable job at its position, unless it waits already."""
        if name not in self._jobs:
            self._jobs[name] = job = WaitingJob(created, name, now)
            _insert(self._schedulable, job)

    def remove(self, name: Name) -> bool:
        """Remove a job. Return whether it was there."""
        job = self._jobs.pop(name, None)
        if job is None:
            return False
        return _discard(self._schedulable, job) or _discard(self._others, job)

    def set_schedulable(self, name: Name, *, schedulable: bool) -> None:
        """Set whether a waiting job can run at present. It keeps its place in the order of creation."""
        job = self._jobs[name]
        source, target = (self._others, self._schedulable) if schedulable else (self._schedulable, self._others)
        if _discard(source, job):
            _insert(target, job)

    def is_schedulable(self, name: Name) -> bool:
        """Return whether a waiting job can run when IPUs are free."""
        return _index(self._schedulable, self._jobs[name]) is not None

    def position(self, name: Name) -> int:
        """Return the position of a waiting job among the schedulable ones of its namespace, from 1."""
        return bisect.bisect_left(self._schedulable.get(name[0], []), self._jobs[name]) + 1

    def first(self, namespace: str) -> Name | None:
        """Return the first schedulable job of a namespace."""
        jobs = self._schedulable.get(namespace)
        return jobs[0].name if jobs else None

    def candidates(self, namespace: str) -> list[Name]:
        """Return the jobs of a namespace that may request IPUs: the first schedulable one, and others before it."""
        first, others = self._schedulable.get(namespace, [])[:1], self._others.get(namespace, [])
        before = others[: bisect.bisect_left(others, first[0])] if first else others
        return [each.name for each in (*before, *first)]

    def longest_wait(self, now: float) -> float:
        """Return the seconds for which a schedulable job has waited longest, 0 if none waits."""
        waiting = (each for jobs in self._schedulable.values() for each in jobs)
        return max((now - each.since for each in waiting), default=0.0)

    def behind(self, namespace: str) -> Iterator[Name]:
        """Yield the schedulable jobs of a namespace behind the first one, in their order."""
        return (each.name for each in self._schedulable.get(namespace, [])[1:])

    def namespaces(self) -> list[str]:
        """Return the namespaces with waiting jobs, that of the oldest job first."""
        oldest = [jobs[0] for queues in (self._schedulable, self._others) for jobs in queues.values()]
        return list(dict.fromkeys(each.name[0] for each in sorted(oldest)))

    def blocked_by(self, name: Name, now: float, unserved: Container[Name] = ()) -> Name | None:
        """Return the job of another namespace that has waited too long and is older than this one.

        ``unserved``: jobs whose V-IPU controllers do not respond. No other job can use their IPUs.
        """
        job = self._jobs[name]
        firsts = (jobs[0] for namespace, jobs in self._schedulable.items() if namespace != name[0])
        blocking = [each for each in firsts if each < job and now - each.since >= PATIENCE_SECONDS]
        found = [each for each in blocking if each.name not in unserved]
        return min(found).name if found else None


def is_reportable(position: int, reported: int) -> bool:
    """Return whether a position differs enough from the one that was reported last to be written again.

    In a long queue, a report at every step would cost one write for each pair of jobs.
    """
    return position > reported or position <= reported * 0.8 or (position <= 5 and position != reported)


def _index(queues: dict[str, list[WaitingJob]], job: WaitingJob) -> int | None:
    """Return the index of a job in its namespace, None if it is not there."""
    jobs = queues.get(job.name[0], [])
    index = bisect.bisect_left(jobs, job)
    return index if index < len(jobs) and jobs[index] == job else None


def _insert(queues: dict[str, list[WaitingJob]], job: WaitingJob) -> None:
    bisect.insort(queues.setdefault(job.name[0], []), job)


def _discard(queues: dict[str, list[WaitingJob]], job: WaitingJob) -> bool:
    """Remove a job. Return whether it was there."""
    index = _index(queues, job)
    if index is None:
        return False
    jobs = queues[job.name[0]]
    del jobs[index]
    if not jobs:
        del queues[job.name[0]]
    return True
