# SPDX-License-Identifier: GPL-3.0-or-later
"""States of the partitions of jobs, read from the proxy again and again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

import structlog

from openipu.kubernetes.operator.admission import Admission
from openipu.kubernetes.operator.proxy_client import PartitionState, ProxyClient, ProxyError

_log = structlog.get_logger("openipu.kubernetes.operator.partition_watch")


class PartitionWatch:
    """Last known states. ``lost`` is called with the UID of a job whose partition is lost."""

    def __init__(
        self, proxy: ProxyClient, admission: Admission, lost: Callable[[str], None], seconds: float = 5.0
    ) -> None:
        self._proxy = proxy
        self._admission = admission
        self._lost = lost
        self._seconds = seconds
        self._states: dict[tuple[str, int], PartitionState] = {}
        self._read_at: float | None = None  # when the last reading began
        self._started = time.monotonic()

    def exists(self, uid: str, instance: int) -> bool:
        """Return whether the proxy has a partition for an instance of a job."""
        found = self._states.get((uid, instance))
        return found is not None and not found.is_lost

    def instances(self, uid: str) -> list[int]:
        """Return the instances of a job that have a partition, also a lost one."""
        return [number for owner, number in self._states if owner == uid]

    def counts(self) -> Counter[str]:
        """Return state -> number of partitions. The state is empty if its controller does not respond."""
        return Counter(each.state for each in self._states.values())

    def drop(self, uid: str, instance: int | None = None) -> None:
        """Drop the partitions of a job, or of one instance, because they were released."""
        for each in [each for each in self._states if each[0] == uid and instance in (None, each[1])]:
            del self._states[each]

    def is_lost(self, uid: str, instance: int) -> bool:
        """Return whether the partition of an instance with pods can no longer be used."""
        if self._read_at is None:
            return False
        grant = self._admission.grant(uid, instance)
        if self._read_at <= (self._started if grant is None else grant.since):
            return False
        found = self._states.get((uid, instance))
        if found is None:
            return True
        return found.is_lost and (grant is None or grant.partition.id == found.id)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(self._seconds)

    async def read(self) -> None:
        """Read once. Failures are logged only: the last states remain."""
        now = time.monotonic()
        try:
            found = await self._proxy.partitions()
        except ProxyError as error:
            _log.warning("states of partitions not read", error=str(error))
            return
        before = self._states
        self._states, self._read_at = {(each.uid, each.instance): each for each in found}, now
        for uid, _ in before.keys() - self._states.keys():
            self._lost(uid)
        for each in found:
            if each.is_lost:
                self._lost(each.uid)
