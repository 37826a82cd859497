# SPDX-License-Identifier: GPL-3.0-or-later
"""Page of all alerts, from the rules of the role ``monitoring`` and of the Helm chart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from .markdown import page, paragraph, table

_ROOT = Path(__file__).resolve().parents[2]
_ROLE = _ROOT / "roles/monitoring/templates/rules/alerts.yml.j2"
_CHART = _ROOT / "charts/ipu-operator/templates/monitoring/prometheusrule.yaml"
_HEAD = r"(?P<name>\w+){q}[, ]+{q}(?P<severity>\w+){q}[, ]+{q}(?P<about>[\w-]+){q}[, ]+{q}(?P<wait>\w+){q}"
_ROLE_ALERT = re.compile(rf"\[\[ alert\('{_HEAD.format(q=chr(39))}(?P<rest>.*?)'(?P<summary>[^\n]*)'\) \]\]", re.DOTALL)
_CHART_ALERT = re.compile(
    rf'"ipu-operator\.alert" \(list \. "{_HEAD.format(q=chr(34))}(?P<rest>.*?)"(?P<summary>[^\n]*)"\) \| nindent',
    re.DOTALL,
)
_LABEL = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_OPTIONAL = re.compile(r"\{\{ with .*?\{\{ end \}\}")
_VALUE = re.compile(r"\{\{ \$value[^}]*\}\}")
_INTRODUCTION = """
This page is for operators. It lists all alerts, each with a link to its runbook: causes, and what to do.

The expressions and their thresholds are in the rules. [Monitoring](../how-to/monitoring.md) and
[alerts of the IPU operator](../how-to/kubernetes-alerts.md) describe their configuration. The messages contain names in
the place of the words in italics.
"""


def pages() -> dict[str, str]:
    """Return the page of the alerts, by its path in docs/reference."""
    parts = [
        "## Alerts of a POD",
        paragraph("The role [`monitoring`](../../roles/monitoring/README.md) installs these rules."),
        _table(_ROLE, _ROLE_ALERT, "monitoring-alerts.md"),
        "## Alerts of the IPU operator",
        paragraph("The [Helm chart](../../charts/ipu-operator/README.md) installs these rules."),
        _table(_CHART, _CHART_ALERT, "kubernetes-alerts.md"),
    ]
    return {"alerts.md": page("Alerts", _INTRODUCTION, parts)}


def _table(source: Path, pattern: re.Pattern[str], runbook: str) -> str:
    rows = list(_rows(source.read_text(), pattern, runbook))
    return table(("Alert and runbook", "Severity", "About", "After", "Message"), rows)


def _rows(text: str, pattern: re.Pattern[str], runbook: str) -> Iterator[tuple[str, ...]]:
    for found in pattern.finditer(text):
        link = f"[{found['name']}](../how-to/{runbook}#{found['name'].lower()})"
        wait = "at once" if found["wait"] == "0m" else found["wait"]
        message = _VALUE.sub("*value*", _LABEL.sub(r"*\1*", _OPTIONAL.sub("", found["summary"])))
        yield link, found["severity"], found["about"], wait, message
