# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that wait for IPUs. In each namespace, the oldest job is first, and only the first one asks for IPUs.

So a small job never overtakes a large one of its namespace. Namespaces compete: the first job of each may ask. When
one of them has waited for ``PATIENCE_SECONDS``, no later job of another namespace may ask before it has its IPUs, so
large jobs start eventually.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
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
    """All waiting jobs."""

    def __init__(self) -> None:
        self._jobs: dict[Name, WaitingJob] = {}
        self._namespaces: dict[str, list[WaitingJob]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, name: object) -> bool:
        return name in self._jobs

    def add(self, name: Name, created: str, now: float) -> None:
        """Add a job at its position, unless it waits already."""
        if name not in self._jobs:
            self._jobs[name] = job = WaitingJob(created, name, now)
            bisect.insort(self._namespaces.setdefault(name[0], []), job)

    def remove(self, name: Name) -> bool:
        """Remove a job. Return whether it was there."""
        job = self._jobs.pop(name, None)
        if job is None:
            return False
        jobs = self._namespaces[name[0]]
        del jobs[bisect.bisect_left(jobs, job)]
        if not jobs:
            del self._namespaces[name[0]]
        return True

    def position(self, name: Name) -> int:
        """Return the position of a waiting job in its namespace, from 1."""
        return bisect.bisect_left(self._namespaces[name[0]], self._jobs[name]) + 1

    def first(self, namespace: str) -> Name | None:
        """Return the first job of a namespace."""
        jobs = self._namespaces.get(namespace)
        return jobs[0].name if jobs else None

    def longest_wait(self, now: float) -> float:
        """Return the seconds for which a job has waited longest, 0 if none waits."""
        return max((now - each.since for each in self._jobs.values()), default=0.0)

    def behind(self, namespace: str) -> Iterator[Name]:
        """Yield the jobs of a namespace behind the first one, in their order."""
        return (each.name for each in self._namespaces.get(namespace, [])[1:])

    def namespaces(self) -> list[str]:
        """Return the namespaces with waiting jobs, that of the oldest job first."""
        return sorted(self._namespaces, key=lambda each: self._namespaces[each][0])

    def blocked_by(self, name: Name, now: float) -> Name | None:
        """Return the job of another namespace that has waited too long and is older than this one."""
        job = self._jobs[name]
        for namespace in self.namespaces():
            first = self._namespaces[namespace][0]
            if first >= job:
                return None
            if namespace != name[0] and now - first.since >= PATIENCE_SECONDS:
                return first.name
        return None


def is_reportable(position: int, reported: int) -> bool:
    """Return whether a position differs enough from the one that was reported last to be written again.

    In a long queue, a report at every step would cost one write for each pair of jobs.
    """
    return position > reported or position <= reported * 0.8 or (position <= 5 and position != reported)
