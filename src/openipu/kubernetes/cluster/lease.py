# SPDX-License-Identifier: GPL-3.0-or-later
"""Leader election with a Lease.

The election of kubernetes-asyncio is not used. It measures with the wall clock, and leaves the work of a leader
running when the API server cannot be reached.
"""

from __future__ import annotations

import asyncio
import datetime
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from openipu.kubernetes.cluster.client import LEASES, ApiError, Client, Object

_log = structlog.get_logger("openipu.kubernetes.cluster.lease")


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Times in seconds. A leader that cannot renew for ``renew`` stops, before others may take over at ``duration``."""

    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    @classmethod
    def of(cls, duration: float) -> LeaseTimes:
        """Return the times of a lease of this duration, in the proportions of the defaults."""
        return cls(duration, duration * 2 / 3, duration * 2 / 15)


class Election:
    """One candidate. ``run`` calls ``lead`` each time it becomes the leader, and cancels it when it no longer is."""

    def __init__(
        self, client: Client, namespace: str, name: str, identity: str, times: LeaseTimes = LeaseTimes()
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._times = times
        self._seen: Any = None  # renewal of the other leader
        self._seen_at = 0.0  # by the clock of this process: clocks of hosts may differ
        self._renewed = -math.inf  # before the request that took or renewed the lease
        self._attempted, self._answered = time.monotonic(), -math.inf
        self.leading = False

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last attempt to take or renew the lease. An attempt takes 10 s at most."""
        return time.monotonic() - self._attempted

    @property
    def unanswered_seconds(self) -> float:
        """Seconds since the API server has last answered an attempt, infinite if it never has."""
        return time.monotonic() - self._answered

    def check(self) -> None:
        """Raise ApiError unless this candidate certainly leads, for example after the process was stopped for a time.

        Call it before each write: the work of a leader is cancelled a little later than its lease ends.
        """
        if not self.leading or not self._is_held():
            raise ApiError("This operator leads no longer. Nothing was written.")

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Lead whenever possible, until cancelled or ``lead`` ends."""
        while True:
            while not (await self._acquire() and self._is_held()):
                await asyncio.sleep(self._times.retry)
            _log.info("leading", identity=self._identity)
            self.leading = True
            work = asyncio.ensure_future(lead())
            try:
                if not await self._hold(work):
                    return
            finally:
                self.leading = False
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                await self._release()
            _log.warning("no longer leading", identity=self._identity)

    async def _hold(self, work: asyncio.Future[None]) -> bool:
        """Renew the lease. Return False when the work has ended, True when the lease is lost."""
        while True:
            await asyncio.wait({work}, timeout=self._times.retry)
            if work.done():
                work.result()
                return False
            if not self._is_held():
                return True
            left = self._renewed + self._times.renew - time.monotonic()
            if not await self._acquire(left) and self._seen is not None:  # another candidate leads
                return True

    def _is_held(self) -> bool:
        return time.monotonic() - self._renewed <= self._times.renew

    async def _acquire(self, seconds: float = 10.0) -> bool:
        """Take or renew the lease. Return whether that succeeded."""
        before = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                held = await self._write()
        except TimeoutError:
            return False
        except ApiError as error:
            if not (error.is_conflict or error.already_exists):
                _log.warning("cannot renew the lease", error=str(error))
                return False
            held = False  # another candidate was faster
        finally:
            self._attempted = time.monotonic()
        self._answered = self._attempted
        if held:
            self._renewed = before  # not the time of the answer: other candidates count from the write
        return held

    async def _write(self) -> bool:
        found = await self._client.find(LEASES, self._namespace, self._name)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        if found is None:
            await self._client.create(LEASES, self._lease(now))
            return True
        spec = found.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._identity) and not self._is_expired(spec):
            return False
        taken = holder != self._identity
        found["spec"] = {
            **spec,
            **self._lease(now)["spec"],
            "acquireTime": now if taken else spec.get("acquireTime", now),
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + taken,
        }
        await self._client.replace(LEASES, found)
        self._seen = None
        return True

    def _lease(self, now: str) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self._namespace, "name": self._name},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": max(1, round(self._times.duration)),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        }

    def _is_expired(self, spec: Object) -> bool:
        """Return whether the leader has not renewed its lease for its duration, as seen by this process."""
        renewal = spec.get("holderIdentity"), spec.get("renewTime")
        if renewal != self._seen:
            self._seen, self._seen_at = renewal, time.monotonic()
            return False
        return time.monotonic() - self._seen_at > float(spec.get("leaseDurationSeconds") or self._times.duration)

    async def _release(self) -> None:
        """Give the lease back, so that another candidate need not wait for its end."""
        try:
            async with asyncio.timeout(self._times.retry):
                found = await self._client.find(LEASES, self._namespace, self._name)
                if found is not None and (found.get("spec") or {}).get("holderIdentity") == self._identity:
                    found["spec"]["holderIdentity"] = ""
                    await self._client.replace(LEASES, found)
        except (TimeoutError, ApiError):
            pass
