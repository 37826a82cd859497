# SPDX-License-Identifier: GPL-3.0-or-later
"""Instruments of metrics, which count events, and samples, which are collected for a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import Counter, Histogram, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from openipu.vipu.metrics.catalog import Metric, Type

# The _created series of each counter repeat process_start_time_seconds.
disable_created_metrics()  # type: ignore[no-untyped-call]

_FAMILIES: Mapping[Type, type[CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily]] = {
    Type.COUNTER: CounterMetricFamily,
    Type.GAUGE: GaugeMetricFamily,
    Type.INFO: InfoMetricFamily,
}


class Meters(Collector):
    """Instruments of one part of a program; they count with or without scrapes."""

    def __init__(self, table: Mapping[str, Metric]) -> None:
        """Set ``table``, the part of the catalog with the metrics."""
        self._table = table
        self._made: list[Counter | Histogram] = []

    def counter(self, name: str) -> Counter:
        """Return a new counter."""
        metric = self._table[name]
        made = Counter(metric.name, metric.help, metric.labels, registry=None)
        self._made.append(made)
        return made

    def histogram(self, name: str) -> Histogram:
        """Return a new histogram."""
        metric = self._table[name]
        made = Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=None)
        self._made.append(made)
        return made

    def collect(self) -> Iterator[Family]:
        """Yield the metrics of all instruments."""
        for made in self._made:
            yield from made.collect()


class Calls(Meters):
    """Metrics of the calls to a gRPC server."""

    def __init__(self, table: Mapping[str, Metric], prefix: str) -> None:
        """Set the ``prefix`` of the names of both metrics in the catalog."""
        super().__init__(table)
        self._handled = self.counter(f"{prefix}_rpc_handled_total")
        self._duration = self.histogram(f"{prefix}_rpc_duration_seconds")

    def of(self, path: str, timed: bool = True) -> Callable[[str, float], None]:
        """Return a function that records a call of a method by status code and seconds.

        ``path`` is ``/package.Service/Method``. Keep the function for further calls of the method, because
        this lookup is the expensive part.
        """
        service, _, method = path.removeprefix("/").rpartition("/")
        observe = self._duration.labels(service, method).observe if timed else None
        handled: dict[str, Counter] = {}

        def record(code: str, seconds: float) -> None:
            counter = handled.get(code)
            if counter is None:
                counter = handled[code] = self._handled.labels(service, method, code)
            counter.inc()
            if observe is not None:
                observe(seconds)

        return record


class Samples:
    """Samples of one scrape; metrics without samples are still exported."""

    def __init__(self, table: Mapping[str, Metric], names: Iterable[str]) -> None:
        """Set the metrics by their names in the catalog."""
        self._families = {name: _family(table[name]) for name in names}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add a value, with ``labels`` in the order of the catalog. The value of an info metric is always 1."""
        family = self._families[name]
        if isinstance(family, InfoMetricFamily):
            family.add_metric(labels, {})
        else:
            family.add_metric(labels, value)

    def families(self) -> Iterator[Family]:
        """Yield all metrics in the order of the given names."""
        yield from self._families.values()


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily:
    return _FAMILIES[metric.type](metric.family, metric.help, labels=metric.labels)
