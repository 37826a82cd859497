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

RELEASE_SECONDS = 60.0  # for the end of a launcher that has released its partition


class PartitionWatch:
    """Last known states. ``changed`` is called with the UID of a job that has lost a partition, or found one."""

    def __init__(
        self,
        proxy: ProxyClient,
        admission: Admission,
        changed: Callable[[str], None],
        seconds: float = 5.0,
        release_seconds: float = RELEASE_SECONDS,
    ) -> None:
        """``seconds``: between two readings. ``release_seconds``: until a released partition counts as lost."""
        self._proxy = proxy
        self._admission = admission
        self._changed = changed
        self._seconds = seconds
        self._release_seconds = release_seconds
        self._states: dict[str, dict[int, PartitionState]] = {}  # UID of a job -> instance -> state
        # UID of a job -> instance -> when its partition was first not listed
        self._gone: dict[str, dict[int, float]] = {}
        self._read_at: float | None = None  # when the last reading began
        self._started = time.monotonic()

    def exists(self, uid: str, instance: int) -> bool:
        """Return whether the proxy has a partition for an instance of a job."""
        found = self._state(uid, instance)
        return found is not None and not found.is_lost

    def instances(self, uid: str) -> set[int]:
        """Return the instances of a job that have a partition, also a lost one."""
        return {*self._states.get(uid, ()), *self._admission.granted(uid)}

    def counts(self) -> Counter[str]:
        """Return state -> number of partitions. The state is empty if its controller does not respond."""
        return Counter(each.state for states in self._states.values() for each in states.values())

    def drop(self, uid: str, instance: int | None = None) -> None:
        """Drop the partitions of a job, or of one instance, because they were released."""
        if instance is None:
            self._states.pop(uid, None)
            self._gone.pop(uid, None)
        else:
            self._states.get(uid, {}).pop(instance, None)
            self._gone.get(uid, {}).pop(instance, None)

    def is_lost(self, uid: str, instance: int) -> bool:
        """Return whether the partition of an instance with pods can no longer be used."""
        if self._read_at is None:
            return False
        grant = self._admission.grant(uid, instance)
        if self._read_at <= (self._started if grant is None else grant.since):
            return False
        found = self._state(uid, instance)
        if found is None:
            return True
        return found.is_lost and (grant is None or grant.partition.id == found.id)

    def is_released(self, uid: str, instance: int) -> bool:
        """Return whether a lost partition was released a short time ago, so that its launcher may end with success."""
        if self._state(uid, instance) is not None:
            return False
        now = time.monotonic()
        return now - self._gone.setdefault(uid, {}).setdefault(instance, now) < self._release_seconds

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
        before, last = self._states, self._read_at
        self._states, self._read_at = {}, now
        for each in found:
            self._states.setdefault(each.uid, {})[each.instance] = each
        earlier, self._gone = self._gone, {}
        for uid in before.keys() | earlier.keys():
            listed, missing = before.get(uid, {}), earlier.get(uid, {})
            for instance in (listed.keys() | missing.keys()) - self._states.get(uid, {}).keys():
                since = self._gone.setdefault(uid, {})[instance] = missing.get(instance, now)
                if instance in listed or (last is not None and last <= since + self._release_seconds < now):
                    self._changed(uid)
        for each in found:
            # A former operator may have reserved a partition that was unknown when this one started.
            is_new = each.instance not in before.get(each.uid, {})
            if each.is_lost or (is_new and self._admission.grant(each.uid, each.instance) is None):
                self._changed(each.uid)

    def _state(self, uid: str, instance: int) -> PartitionState | None:
        return self._states.get(uid, {}).get(instance)
