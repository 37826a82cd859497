# SPDX-License-Identifier: GPL-3.0-or-later
"""Rate limit for remote parties. No I/O."""

from __future__ import annotations


class TokenBucket:
    """Limit of ``at_once`` events, then ``rate`` events per second. Times are monotonic seconds."""

    def __init__(self, rate: float, at_once: int) -> None:
        self._rate = rate
        self._limit = self._tokens = float(at_once)
        self._time: float | None = None

    def delay(self, now: float) -> float:
        """Count an event and return the seconds until the next one is within the limit."""
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def allow(self, now: float) -> bool:
        """Return whether an event is within the limit, and count it only then."""
        self._refill(now)
        allowed = self._tokens >= 1
        self._tokens -= allowed
        return allowed

    def _refill(self, now: float) -> None:
        if self._time is not None:
            self._tokens = min(self._limit, self._tokens + (now - self._time) * self._rate)
        self._time = now
