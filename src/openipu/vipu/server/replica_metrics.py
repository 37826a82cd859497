# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics that every controller exports: its release, whether it leads, and how far a follower is behind.

A follower has only these and those of its process. The records are in the metrics of the leader, so sums over all
controllers count them once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Samples

if TYPE_CHECKING:  # its import takes a second
    from openipu.vipu.storage.etcd.mirror import Mirror

_METRICS = (
    "vipu_build_info",
    "vipu_controller_leads",
    "vipu_controller_leader_info",
    "vipu_controller_leader_changes_total",
    "vipu_follower_revision",
    "vipu_follower_silence_seconds",
)


class ReplicaMetrics(Collector):
    """Collector that reads the mirror at each scrape. It never blocks."""

    def __init__(self, mirror: Mirror | None = None, leads: Callable[[], bool] = lambda: True) -> None:
        """``mirror``: None for a controller without others. ``leads``: whether this controller leads now."""
        self._mirror = mirror
        self._leads = leads
        self._version = metadata.version("openipu")

    def collect(self) -> Iterator[Family]:
        """Return all metrics. A controller without others has samples of its release only."""
        samples = Samples(CONTROLLER, _METRICS)
        samples.add("vipu_build_info", 1, self._version)
        if self._mirror is not None:
            self._add(samples, self._mirror, leads=self._leads())
        return samples.families()

    def _add(self, samples: Samples, mirror: Mirror, *, leads: bool) -> None:
        leader, head = mirror.content.leader, mirror.content.head  # another thread replaces them
        samples.add("vipu_controller_leads", leads)
        samples.add("vipu_controller_leader_changes_total", mirror.leader_changes)
        if leader is not None:
            samples.add("vipu_controller_leader_info", 1, leader.addresses.get("user", ""))
        if not leads:
            samples.add("vipu_follower_revision", head["revision"] if head else 0)
            samples.add("vipu_follower_silence_seconds", time.monotonic() - mirror.last_response)
