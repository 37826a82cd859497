# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters and histograms of the events of a replica. ``metrics`` adds the values that are read at a scrape.

Names and labels are an interface for dashboards and alerts. Do not rename them. The table in
docs/reference/kubernetes-operator.md has the same texts; a unit test compares them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from prometheus_client import Counter, Histogram, disable_created_metrics
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from openipu.kubernetes.cluster.client import Object
from openipu.kubernetes.cluster.work_queue import RetryLaterError

_Key = TypeVar("_Key")

_NO_ANSWER = "none"  # instead of a status code
# Seconds. Most reconciliations need no request; others wait for IPUs that are configured.
_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)

# The _created series of each counter repeat process_start_time_seconds.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Meters(Collector):
    """Instruments of one replica. They count whether or not it leads."""

    def __init__(self) -> None:
        self._duration = Histogram(
            "ipu_operator_reconcile_duration_seconds",
            "Duration of reconciliations of jobs.",
            buckets=_BUCKETS,
            registry=None,
        )
        self._errors = Counter(
            "ipu_operator_reconcile_errors_total",
            "Reconciliations that failed and are tried again.",
            registry=None,
        )
        self._restarts = Counter(
            "ipu_operator_job_restarts_total",
            "Restarts of jobs that this replica has observed while it led.",
            registry=None,
        )
        self._api_requests = Counter(
            "ipu_operator_api_requests_total",
            "Requests to the API server, by method and status code; code none: it did not respond.",
            ["method", "code"],
            registry=None,
        )
        self._proxy_failures = Counter(
            "ipu_operator_proxy_failures_total",
            "Requests that the V-IPU proxy rejected, by reason. NoCapacity is normal while jobs wait for IPUs. "
            "Unavailable: the proxy or a V-IPU controller did not respond.",
            ["reason"],
            registry=None,
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all instruments."""
        for each in (self._duration, self._errors, self._restarts, self._api_requests, self._proxy_failures):
            yield from each.collect()

    def timed(self, handle: Callable[[_Key], Awaitable[float | None]]) -> Callable[[_Key], Awaitable[float | None]]:
        """Return a handler that is timed, and whose errors are counted."""

        async def timed(key: _Key) -> float | None:
            begun = time.perf_counter()
            try:
                return await handle(key)
            except RetryLaterError:
                raise
            except Exception:
                self._errors.inc()
                raise
            finally:
                self._duration.observe(time.perf_counter() - begun)

        return timed

    def count_restarts(self, restarts: int) -> None:
        """Count restarts of a job."""
        self._restarts.inc(restarts)

    def count_api_request(self, method: str, code: int) -> None:
        """Count a request to the API server. ``code``: status of its answer, 0 for none."""
        self._api_requests.labels(method, str(code or _NO_ANSWER)).inc()

    def count_proxy_failure(self, reason: str) -> None:
        """Count a request that the proxy rejected."""
        self._proxy_failures.labels(reason).inc()


class RestartCounter:
    """Restarts of jobs, from the counts in their statuses. A job that is seen first counts from then on."""

    def __init__(self, meters: Meters) -> None:
        self._meters = meters
        self._known: dict[str, int] = {}  # UID of a job -> its restarts

    def changed(self, job: Object, *, exists: bool) -> None:
        """Note a job that appeared, changed or disappeared."""
        uid, restarts = job["metadata"]["uid"], int((job.get("status") or {}).get("restartCount") or 0)
        new = restarts - self._known.get(uid, restarts)
        if new > 0:
            self._meters.count_restarts(new)
        if exists:
            self._known[uid] = restarts
        else:
            self._known.pop(uid, None)
