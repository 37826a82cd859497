# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration of the role `monitoring`, checked with the tools of Prometheus and Alertmanager."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.peers.monitoring_files import write_files
from tests.peers.programs import needs

pytestmark = needs("promtool", "amtool", packages="prometheus prometheus-alertmanager")
CASES = yaml.safe_load(Path(__file__).with_name("alert_tests.yml").read_text())
HASH = "$2y$10$CwTycUXWue0Thq9StjUM0uJ8nRz1Y5d6iYcYf0p1cYF0rC0uZk6lW"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("monitoring"))


@pytest.fixture(scope="module")
def alerts(files: Path) -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load((files / "rules/alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def run_tool(*command: str | Path) -> str:
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_promtool_and_amtool_accept_the_defaults(files: Path) -> None:
    assert "SUCCESS" in run_tool("promtool", "check", "rules", *sorted((files / "rules").glob("*.yml")))
    assert "is valid" in run_tool("promtool", "check", "config", files / "prometheus.yml")
    assert "SUCCESS" in run_tool("amtool", "check-config", files / "alertmanager.yml")


def test_promtool_and_amtool_accept_all_options(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("")
    files = write_files(
        tmp_path,
        ROOT / "inventory/pod64/pod.yml",
        monitoring_web_certificate="/etc/ssl/monitoring.crt",
        monitoring_web_key="/etc/ssl/monitoring.key",
        monitoring_web_ca=str(tmp_path / "ca.crt"),
        monitoring_web_users={"prometheus": HASH},
        monitoring_web_username="prometheus",
        monitoring_web_password="not shown",
        monitoring_metric_names={"ipum_ipu_power_watts": "vendor_power", "vipu_agent_up": "vendor_up"},
        monitoring_federate=[
            {"pod": "north", "address": "10.1.3.101:9090"},
            {"pod": "south", "address": "10.2.3.101:9090"},
        ],
        monitoring_scrape_configs=[{"job_name": "more", "static_configs": [{"targets": ["10.1.3.9:9100"]}]}],
        monitoring_ipmi={"machine": {"username": "root", "password": "not shown"}},
        monitoring_snmp={
            "pdu": {"username": "reader", "auth_key": "not shown 1", "priv_key": "not shown 2"},
            "switch": {"version": "v2c", "community": "not shown 3"},
        },
        monitoring_alert_receivers=[{"name": "operations", "webhook_configs": [{"url": "http://127.0.0.1:9099/"}]}],
        monitoring_alert_route={"routes": [{"matchers": ['severity="critical"'], "receiver": "operations"}]},
        monitoring_watchdog_receiver="operations",
    )
    test_promtool_and_amtool_accept_the_defaults(files)
    configuration = yaml.safe_load((files / "prometheus.yml").read_text())
    jobs = {job["job_name"]: job for job in configuration["scrape_configs"]}
    assert {name for name, job in jobs.items() if job.get("scheme") == "https"} == {
        "prometheus",
        "alertmanager",
        "node",
        "federate",
    }
    renamed = [(rule["regex"], rule["replacement"]) for rule in jobs["ipu-machine"]["metric_relabel_configs"]]
    assert renamed == [("vendor_power", "ipum_ipu_power_watts"), ("vendor_up", "vipu_agent_up")]
    assert "not shown" not in (files / "prometheus.yml").read_text()
    targets = json.loads((files / "targets.json").read_text())
    assert {job: len(found) for job, found in targets.items()} == {
        "vipu-controller": 1,
        "etcd": 0,
        "ipu-machine": 16,
        "node": 4,
        "pdu": 2,
        "switch": 2,
        "bmc": 16,
    }
    # Targets are unique and have a stable order.
    assert all(len({target["address"] for target in found}) == len(found) for found in targets.values())
    assert [target["labels"]["host"] for target in targets["node"]] == ["server1", "server2", "server3", "server4"]


def test_every_alert_is_tested(alerts: dict[str, dict[str, Any]]) -> None:
    assert sorted(case["alert"] for case in CASES) == sorted(alerts)
    assert all(case.get("inactive") or case["alert"] == "Watchdog" for case in CASES)


def test_every_alert_has_a_runbook_section(alerts: dict[str, dict[str, Any]]) -> None:
    page = (ROOT / "docs/how-to/monitoring-alerts.md").read_text()
    headings = [line.lstrip("# ") for line in page.splitlines() if line.startswith("### ")]
    assert sorted(headings) == sorted(alerts)
    for name, rule in alerts.items():
        assert rule["annotations"]["runbook_url"].endswith(f"docs/how-to/monitoring-alerts.md#{name.lower()}")


def test_every_alert_fires_and_resolves(files: Path, alerts: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    tests = []
    for case in CASES:
        rule = alerts[case["alert"]]
        annotations = {"summary": case["summary"], "runbook_url": rule["annotations"]["runbook_url"]}
        fired = {"exp_labels": {**rule["labels"], **case.get("labels", {})}, "exp_annotations": annotations}
        firing = case["firing"] if isinstance(case["firing"], list) else [case["firing"]]
        times = [*((time, [fired]) for time in firing), *((time, []) for time in case.get("inactive", ()))]
        tests.append(
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in case["series"].items()],
                "alert_rule_test": [
                    {"eval_time": time, "alertname": case["alert"], "exp_alerts": expected} for time, expected in times
                ],
            }
        )
    test_file = tmp_path / "tests.yml"
    rules = [str(file) for file in sorted((files / "rules").glob("*.yml"))]
    test_file.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": tests}))
    assert "SUCCESS" in run_tool("promtool", "test", "rules", test_file)
