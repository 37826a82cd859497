# SPDX-License-Identifier: GPL-3.0-or-later
"""Scrapes of metrics, and their comparison with the catalog."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
from collections.abc import Mapping
from urllib.parse import urlsplit

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from openipu.vipu.metrics.catalog import PROCESS, Metric, Type

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
_SUFFIXES = ("_bucket", "_sum", "_count")


def get(
    url: str, accept: str = OPENMETRICS, tls: ssl.SSLContext | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Return status, content type and text of a response."""
    where = urlsplit(url)
    assert where.hostname
    connection = (
        http.client.HTTPSConnection(where.hostname, where.port, timeout=20, context=tls)
        if where.scheme == "https"
        else http.client.HTTPConnection(where.hostname, where.port, timeout=20)
    )
    try:
        connection.request("GET", f"{where.path}?{where.query}", headers={"Accept": accept, **(headers or {})})
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read().decode()
    finally:
        connection.close()


class Scrape:
    """Metrics of one scrape."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        status, kind, text = get(url, tls=tls)
        assert (status, kind.split(";")[0]) == (200, "application/openmetrics-text")
        assert text.endswith("# EOF\n")
        self.families = {family.name: family for family in read_openmetrics(text)}
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def get(self, name: str, **labels: str) -> float | None:
        """Return the value with exactly these labels, None for none."""
        return self._values.get((name, frozenset(labels.items())))

    def all(self, name: str) -> list[tuple[dict[str, str], float]]:
        """Return all values of a name with their labels."""
        return [(dict(labels), value) for (found, labels), value in self._values.items() if found == name]

    def sum(self, name: str, **labels: str) -> float:
        """Return the sum of all values that have these labels."""
        return sum(value for found, value in self.all(name) if labels.items() <= found.items())


def check(url: str, table: Mapping[str, Metric]) -> Scrape:
    """Check that a URL serves exactly the metrics of the catalog, with their types and labels, and return them.

    promtool, when installed, must accept them too.
    """
    documented = {**table, **PROCESS}
    by_family = {metric.family: metric for metric in documented.values()}
    scrape = Scrape(url)
    assert set(scrape.families) == set(by_family)
    for name, family in scrape.families.items():
        metric = by_family[name]
        assert family.type == metric.type, name
        for sample in family.samples:
            labels = set(sample.labels) - ({"le"} if metric.type is Type.HISTOGRAM else set())
            assert labels == set(metric.labels), sample
    status, kind, text = get(url, accept="")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    names = {sample.name for family in read_text(text) for sample in family.samples}
    found = {_base_name(name, documented) for name in names}
    assert found <= set(documented), found - set(documented)
    promtool = shutil.which("promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return scrape


def _base_name(name: str, documented: Mapping[str, Metric]) -> str:
    """Return a name without the suffix of a histogram."""
    if name in documented:
        return name
    return next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)
