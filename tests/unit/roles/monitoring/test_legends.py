# SPDX-License-Identifier: GPL-3.0-or-later
"""Legends of the dashboards: each one names its series in words and distinguishes it from the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
from ansible_collections.openipu.pod.plugins.plugin_utils import grafana

from tests.unit.roles.monitoring.test_dashboards import DEFINITIONS, EXPORTED, TARGET_LABELS, selectors

NAMES = {"pod", "host", "rack"}  # values that are names of things and need no word before them
# The name of a link contains its kind, and an allocation is in one cluster.
IMPLIED = {"kind": "link", "cluster": "allocation"}


def legends() -> Iterator[tuple[str, str, str]]:
    """Yield the place, the legend and the query of all panels except tables, which have columns."""
    for name, definition in DEFINITIONS.items():
        for row in definition["rows"]:
            for panel in row["panels"]:
                for legend, query in panel["queries"].items():
                    if panel.get("kind") != "table":
                        yield f"{name}: {panel['title']}", legend, query


def labels_of(legend: str) -> list[str]:
    return re.findall(r"\{\{(\w+)\}\}", legend)


def faults(legend: str, query: str) -> Iterator[str]:
    """Yield what is wrong with the legend of a query."""
    labels = set(labels_of(legend))
    if not legend.strip():
        yield "no legend"
    for before, label in re.findall(r"(\S*) ?\{\{(\w+)\}\}", legend):
        if label not in NAMES and not re.fullmatch(r"[\w-]+", before):
            yield f"no word before the value of '{label}'"
    missing = distinguishing(query) - labels - {implied for implied, label in IMPLIED.items() if label in labels}
    if missing:
        yield f"series differ in {', '.join(sorted(missing))}"


def distinguishing(query: str) -> set[str]:
    """Return the labels in which the series of a query differ, as far as it and the catalog of metrics show them."""
    parsed: Any = promql_parser.parse(query)
    if isinstance(parsed, promql_parser.AggregateExpr) and parsed.modifier is not None:
        if parsed.modifier.type == promql_parser.AggModifierType.By:
            return set(parsed.modifier.labels)
        return distinguishing(str(parsed.expr.prettify())) - set(parsed.modifier.labels)
    if not isinstance(parsed, promql_parser.VectorSelector):
        return set()
    (selector,) = selectors(query)
    own = (EXPORTED[selector.name] or set()) - TARGET_LABELS
    fixed = {each.name for each in selector.matchers.matchers if str(each.op).endswith("Equal")}
    return (own | {"host"} if selector.name.startswith(("vipu_", "ipum_", "up")) else own) - fixed


def test_every_legend_names_its_series() -> None:
    wrong = [f"{place}: '{legend}': {fault}" for place, legend, query in legends() for fault in faults(legend, query)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("legend", "query", "expected"),
    [
        ("", "sum(up)", ["no legend"]),
        ("{{pod}} {{host}}", "up", []),
        ("{{pod}} {{host}} {{ipu}}", "ipum_ipu_power_watts", ["no word before the value of 'ipu'"]),
        ("{{pod}} {{host}} IPU {{ipu}}", "ipum_ipu_power_watts", []),
        ("{{pod}} {{host}}", "ipum_ipu_power_watts", ["series differ in ipu"]),
        ("{{pod}}", "sum by (pod, state) (vipu_partitions)", ["series differ in state"]),
        (
            "{{pod}} {{state}}",
            "max without (host, instance) (vipu_partitions)",
            ["no word before the value of 'state'"],
        ),
        ("{{pod}}", "max without (host, instance) (vipu_partitions)", ["series differ in state"]),
        ("{{pod}}", 'max without (host, instance) (vipu_partitions{state="error"})', []),
    ],
)
def test_a_legend_without_words_or_labels_is_found(legend: str, query: str, expected: list[str]) -> None:
    assert list(faults(legend, query)) == expected


def test_a_dashboard_without_a_legend_is_rejected() -> None:
    panel = {"title": "P", "queries": {"": "sum(up)"}}
    definition = {"uid": "a", "title": "A", "rows": [{"title": "R", "panels": [panel]}]}
    message = "Cannot create panel 'P' of dashboard 'A': a query has no legend. Use the legend as its key."
    with pytest.raises(grafana.DefinitionError, match=f"^{re.escape(message)}$"):
        grafana.dashboard(definition)
    grafana.dashboard({**definition, "rows": [{"title": "R", "panels": [{**panel, "kind": "table"}]}]})
