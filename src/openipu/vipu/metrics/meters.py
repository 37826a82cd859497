# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of the catalog as objects: those that are counted up as things happen, and those found when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import Counter, Histogram, disable_created_metrics
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from openipu.vipu.metrics.catalog import Metric, Type

# A series more for each counter, which tells what process_start_time_seconds tells of all of them.
disable_created_metrics()  # type: ignore[no-untyped-call]

_FAMILIES: Mapping[Type, type[CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily]] = {
    Type.COUNTER: CounterMetricFamily,
    Type.GAUGE: GaugeMetricFamily,
    Type.INFO: InfoMetricFamily,
}


class Meters(Collector):
    """Instruments of one part of a program, which counts with them whether or not somebody asks."""

    def __init__(self, table: Mapping[str, Metric]) -> None:
        """``table``: the part of the catalog that has its metrics."""
        self._table = table
        self._made: list[Counter | Histogram] = []

    def counter(self, name: str) -> Counter:
        """Make a counter."""
        metric = self._table[name]
        made = Counter(metric.name, metric.help, metric.labels, registry=None)
        self._made.append(made)
        return made

    def histogram(self, name: str) -> Histogram:
        """Make a histogram."""
        metric = self._table[name]
        made = Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=None)
        self._made.append(made)
        return made

    def collect(self) -> Iterator[Family]:
        """What was counted so far."""
        for made in self._made:
            yield from made.collect()


class Calls(Meters):
    """The calls that a gRPC server answers."""

    def __init__(self, table: Mapping[str, Metric], prefix: str) -> None:
        """``prefix``: with which the names of both metrics begin in the catalog."""
        super().__init__(table)
        self._handled = self.counter(f"{prefix}_rpc_handled_total")
        self._duration = self.histogram(f"{prefix}_rpc_duration_seconds")

    def of(self, path: str, timed: bool = True) -> Callable[[str, float], None]:
        """To be called for each answer of a method, ``/package.Service/Method``, with status code and seconds.

        Found once for a method and not for every call, which is the dearer part.
        """
        service, _, method = path.removeprefix("/").rpartition("/")
        observe = self._duration.labels(service, method).observe if timed else None
        handled: dict[str, Counter] = {}

        def answered(code: str, seconds: float) -> None:
            counter = handled.get(code)
            if counter is None:
                counter = handled[code] = self._handled.labels(service, method, code)
            counter.inc()
            if observe is not None:
                observe(seconds)

        return answered


class Samples:
    """What is found at one moment; a metric with no sample is told with none."""

    def __init__(self, table: Mapping[str, Metric], names: Iterable[str]) -> None:
        """Of these metrics of the catalog."""
        self._families = {name: _family(table[name]) for name in names}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Take a value; ``labels`` in the order of the catalog. An info has no other value than 1."""
        family = self._families[name]
        if isinstance(family, InfoMetricFamily):
            family.add_metric(labels, {})
        else:
            family.add_metric(labels, value)

    def families(self) -> Iterator[Family]:
        """All of them, in the order of their names as given."""
        yield from self._families.values()


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily:
    return _FAMILIES[metric.type](metric.family, metric.help, labels=metric.labels)
