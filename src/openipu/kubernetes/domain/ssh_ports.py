# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports of SSH servers in pods that use the network of their hosts, where all pods share the ports.

The workers of an instance have consecutive ports. Their first port follows from the job, and from the number of its
restarts. So a port that another program uses does not stop the job for good. Ports of other jobs are avoided.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class PortRange:
    """Ports from ``first`` to ``last``."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


DEFAULT_RANGE = PortRange(20000, 29999)  # below the ports of Services, and of outgoing connections


def parse(text: str) -> PortRange:
    """Return a range that is written like ``20000-29999``. Raises ValueError with a sentence."""
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) <= _MAX_PORT):
        raise ValueError(f"{text!r} is no range of ports. Write it like {DEFAULT_RANGE}.")
    return PortRange(int(first), int(last))


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a job in one of its attempts."""

    uid: str
    number: int
    attempt: int


class PortBook:
    """Ports in use."""

    def __init__(self, ports: PortRange) -> None:
        self._range = ports
        self._users: dict[int, Instance] = {}
        self._offsets: dict[Instance, int] = {}  # port of each worker minus its number

    def note(self, instance: Instance, number: int, port: int) -> None:
        """Note the port of a worker of an instance. ``number``: that of the worker in the job."""
        self._offsets[instance] = port - number
        self._users[port] = instance

    def ports(self, instance: Instance, workers: int) -> range:
        """Return the ports of the workers of an instance. They stay the same until the job restarts.

        When no consecutive ports are free, other jobs have some of them. The scheduler keeps such pods apart.
        """
        number = instance.number * workers  # of the first worker
        if instance not in self._offsets:
            self._offsets[instance] = self._free(instance, workers) - number
            self._discard({each for each in self._offsets if _is_earlier(each, instance)})
        first = self._offsets[instance] + number
        found = range(first, first + workers)
        self._users.update(dict.fromkeys(found, instance))
        return found

    def discard(self, uid: str) -> None:
        """Discard the ports of a job that no longer exists."""
        self._discard({each for each in self._offsets if each.uid == uid})

    def _discard(self, instances: set[Instance]) -> None:
        if not instances:
            return
        for each in instances:
            del self._offsets[each]
        self._users = {port: each for port, each in self._users.items() if each not in instances}

    def _free(self, instance: Instance, workers: int) -> int:
        count = max(1, self._range.last - self._range.first + 2 - workers)  # possible first ports
        digest = hashlib.sha256(f"{instance.uid}/{instance.number}/{instance.attempt}".encode()).digest()
        start = int.from_bytes(digest[:8]) % count
        candidates = (self._range.first + (start + step) % count for step in range(count))
        free = (each for each in candidates if not any(each + index in self._users for index in range(workers)))
        return next(free, self._range.first + start)


def _is_earlier(one: Instance, other: Instance) -> bool:
    return (one.uid, one.number) == (other.uid, other.number) and one.attempt < other.attempt
