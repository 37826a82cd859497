# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of the reference page of metrics with the catalog."""

import re
from itertools import chain

from openipu.vipu.metrics.catalog import CONTROLLER, MACHINE, PROCESS, Metric
from tools.metrics import PAGE, TABLES, updated


def test_the_page_matches_the_catalog() -> None:
    page = PAGE.read_text()
    assert updated(page) == page, "run python tools/metrics.py"
    for name in chain(*TABLES.values()):
        assert f"| `{name}` |" in page


def test_queries_use_exported_metrics_only() -> None:
    used = set(re.findall(r"\b(?:vipu|ipum)_[a-z0-9_]+", PAGE.read_text()))
    exported = {name for metric in (*CONTROLLER.values(), *MACHINE.values()) for name in queried(metric)}
    assert used <= exported | {"vipu_", "ipum_"}, used - exported


def queried(metric: Metric) -> set[str]:
    suffixes = ("_bucket", "_sum", "_count") if metric.type == "histogram" else ()
    return {metric.name, *(metric.name + suffix for suffix in suffixes)}


def test_a_stale_page_is_detected() -> None:
    page = PAGE.read_text()
    assert updated(page.replace("| `vipu_agents` | gauge |", "| `vipu_agents` | counter |")) == page
    assert updated(page.replace("| `vipu_agents` |", "| `vipu_machines` |")) == page


def test_names_follow_the_conventions() -> None:
    for name, metric in chain(CONTROLLER.items(), MACHINE.items(), PROCESS.items()):
        assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", name)
        assert name.startswith("vipu_" if name in CONTROLLER else "ipum_" if name in MACHINE else "process_")
        assert name.endswith("_total") == (metric.type == "counter")
        assert name.endswith("_info") == (metric.type == "info")
        assert bool(metric.buckets) == (metric.type == "histogram")
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert metric.help.endswith(".")
        assert len(set(metric.labels)) == len(metric.labels)
        assert not {"le", "quantile", "job", "instance"} & set(metric.labels)
