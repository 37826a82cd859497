# SPDX-License-Identifier: GPL-3.0-or-later
"""Monitoring by the chart. promtool evaluates its alerts on series as the operator exports them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.kubernetes.cluster.lease import Election, LeaseTimes
from openipu.kubernetes.operator import metrics
from openipu.kubernetes.operator.meters import Meters
from openipu.kubernetes.operator.replica import Replica
from tests.kubernetes.charts import FULLNAME, MANAGER, MONITORING, find, render
from tools.kubernetes import helm
from tools.kubernetes.site import CHECKOUT

ENABLED = {"serviceMonitor.enabled": True, "prometheusRule.enabled": True}
CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("chart_alerts.yml").read_text())
PAGE = CHECKOUT / "docs" / "how-to" / "kubernetes-alerts.md"


@pytest.fixture(scope="module")
def groups() -> list[dict[str, Any]]:
    """Return the groups of alerts."""
    found = find(render(ENABLED), "PrometheusRule", FULLNAME)
    assert found is not None
    groups: list[dict[str, Any]] = found["spec"]["groups"]
    return groups


def alerts(groups: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(*arguments: str | Path) -> str:
    if shutil.which("promtool") is None:
        pytest.skip("needs promtool: apt-get install prometheus")
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_nothing_is_created_without_the_prometheus_operator() -> None:
    values = [word for name in ENABLED for word in ("--set", f"{name}=true")]
    assert not {each["kind"] for each in helm.template(*values)} & set(MONITORING)
    assert not {each["kind"] for each in render()} & set(MONITORING)


def test_the_operator_is_scraped_at_its_service() -> None:
    objects = render(ENABLED)
    monitor, service = (
        find(objects, "ServiceMonitor", f"{FULLNAME}-metrics"),
        find(objects, "Service", f"{FULLNAME}-metrics"),
    )
    assert monitor is not None and service is not None
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    (port,) = service["spec"]["ports"]
    assert (endpoint["port"], endpoint["scheme"], endpoint["path"]) == (port["name"], "https", metrics.PATH)
    deployment = find(objects, "Deployment", f"{FULLNAME}-{MANAGER}")
    assert deployment is not None
    assert service["spec"]["selector"].items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_alerts_use_metrics_that_the_operator_exports(groups: list[dict[str, Any]]) -> None:
    replica = Replica(Election(None, "ns", "lease", "me", LeaseTimes.of(15)))  # type: ignore[arg-type]
    families = {each.name: each.type for each in metrics.registry(Meters(), replica).collect()}
    suffixes = {"counter": ("_total",), "histogram": ("_count", "_sum", "_bucket")}
    exported = {name + suffix for name, kind in families.items() for suffix in suffixes.get(kind, ("",))}
    used = {name for each in alerts(groups).values() for name in re.findall(r"\bipu_operator_\w+", each["expr"])}
    assert used and used <= exported


def test_every_alert_has_a_section_of_the_runbook(groups: list[dict[str, Any]]) -> None:
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), flags=re.MULTILINE)
    assert [name for name in alerts(groups) if name not in sections] == []
    for name, rule in alerts(groups).items():
        assert rule["annotations"]["runbook_url"].endswith(f"/{PAGE.relative_to(CHECKOUT)}#{name.lower()}")
        assert rule["labels"].keys() == {"severity", "about"}


def test_alerts_fire_and_end(groups: list[dict[str, Any]], tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(yaml.safe_dump({"groups": groups}))
    assert "SUCCESS" in promtool("check", "rules", rules)
    known = alerts(groups)
    assert {case["alert"] for case in CASES} == known.keys()
    tests = []
    for case in CASES:
        rule = known[case["alert"]]
        annotations = {"summary": case["summary"], "runbook_url": rule["annotations"]["runbook_url"]}
        fired = {"exp_labels": {**rule["labels"], **case.get("labels", {})}, "exp_annotations": annotations}
        times = [(case["firing"], [fired]), *((time, []) for time in case["inactive"])]
        series = [
            {"series": name.replace("SERIES", f'job="{FULLNAME}-metrics",namespace="default"'), "values": values}
            for name, values in case["series"].items()
        ]
        expected = [
            {"eval_time": time, "alertname": case["alert"], "exp_alerts": alerts_then} for time, alerts_then in times
        ]
        tests.append({"interval": "1m", "input_series": series, "alert_rule_test": expected})
    file = tmp_path / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", file)
