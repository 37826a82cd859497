# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of partition operations, computed from the sequence of committed records. No I/O."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client.metrics_core import Metric as Family

from openipu.vipu.domain.model import Operation, Partition
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Meters, Samples

_RUNNING = (Operation.CREATING, Operation.RESETTING, Operation.REMOVING)
_AGE = "vipu_partition_operation_age_seconds"
_OUTCOMES = {Operation.IDLE: "ok", Operation.FAILED: "failed"}


class LifeMeters(Meters):
    """Metrics of partition operations. Use it in one thread, except ``collect``."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with no records. ``clock``: monotonic time in seconds."""
        self._clock = clock
        super().__init__(CONTROLLER)
        self._durations = self.histogram("vipu_partition_operation_duration_seconds")
        self._losses = self.counter("vipu_partition_losses_total")
        self._auto_resets = self.counter("vipu_partition_auto_resets_total")
        self._moves = self.counter("vipu_partition_moves_total")
        self._seen: dict[str, tuple[Partition, float]] = {}  # with the start of its operation

    def collect(self) -> Iterator[Family]:
        """Yield the counts and the age of the oldest operation of each kind."""
        yield from super().collect()
        now = self._clock()
        ages = dict.fromkeys(_RUNNING, 0.0)
        for record, since in list(self._seen.values()):  # a copy in one step: another thread writes
            if record.operation in ages:
                ages[record.operation] = max(ages[record.operation], now - since)
        samples = Samples(CONTROLLER, [_AGE])
        for operation, age in ages.items():
            samples.add(_AGE, age, operation.name.lower())
        yield from samples.families()

    def put(self, record: Partition, now: float) -> None:
        """Count a committed record. ``now``: monotonic time in seconds."""
        before, since = self._seen.get(record.id, (None, now))
        if before is not None:
            self._compare(before, record, now - since)
        # A second reset is a new operation. A blocked removal stays the same operation.
        if before is None or before.operation is not record.operation or record.operation is Operation.RESETTING:
            since = now
        self._seen[record.id] = record, since

    def delete(self, id: str, now: float) -> None:
        """Count a deleted record."""
        before, since = self._seen.pop(id, (None, now))
        if before is not None and before.operation is Operation.REMOVING:
            self._ended(before.operation, "ok", now - since)

    def _compare(self, before: Partition, record: Partition, seconds: float) -> None:
        operation = record.operation
        if before.operation in _RUNNING and operation in _OUTCOMES:
            self._ended(before.operation, _OUTCOMES[operation], seconds)
        if before.operation is Operation.IDLE and operation in (Operation.FAILED, Operation.UNREACHABLE):
            self._losses.inc()
        if operation is Operation.RESETTING and record.retries > before.retries:
            self._auto_resets.inc()
            if record.ipus != before.ipus:
                self._moves.inc()

    def _ended(self, operation: Operation, outcome: str, seconds: float) -> None:
        self._durations.labels(operation.name.lower(), outcome).observe(seconds)
