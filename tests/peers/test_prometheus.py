# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus with the rules of the role `monitoring` scrapes a rack twin and responds to queries of dashboards."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.plugin_utils import grafana

from tests import ROOT
from tests.peers.exporters import HOST, fetch, responds, running
from tests.peers.monitoring_files import ROLE, write_files
from tests.peers.programs import needs
from tests.ports import free_port
from tests.waiting import until

PROGRAMS = {
    "prometheus": "prometheus",
    "node": "prometheus-node-exporter",
    "snmp": "prometheus-snmp-exporter",
    "alertmanager": "prometheus-alertmanager",
}
pytestmark = needs(*PROGRAMS.values(), packages=" ".join(PROGRAMS.values()))
BIN = Path(sys.executable).parent
OFFSET = 48  # other twins may run
# The twin has no SNMP on its switches, no BMCs, no faults, and one controller without etcd.
UNAVAILABLE = re.compile(
    r"\b(if[A-Z]|hrProcessorLoad|switch:|ipmi_|vipu_controller_|vipu_follower_|etcd[_:])|job=\"(switch|etcd)\""
)
FAULTS_ONLY = re.compile(r"^(max without \(host, instance\) \()?(ALERTS|vipu_partition_error|vipu_cluster_test_\w+)\b")
ALWAYS = re.compile(r"or vector\(0\)$")
Query = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run a twin with a partition, and yield the path of its pod.yml."""
    folder = tmp_path_factory.mktemp("twin") / "state"
    environment = {**os.environ, "TWIN_STATE_DIR": str(folder), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}

    def run_command(*command: str | Path) -> None:
        result = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240)
        assert result.returncode == 0, result.stdout + result.stderr

    try:
        run_command(BIN / "twin", "up", "--machines", "4", "--offset", str(OFFSET))
        pod = folder / "pod/pod.yml"
        for playbook in ("vipu_objects", "partitions"):
            run_command(BIN / "ansible-playbook", ROOT / f"playbooks/{playbook}.yml", "-i", pod)
        yield pod
    finally:
        run_command(BIN / "twin", "down")


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def prometheus(rack: Path, port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """Run Prometheus until it has scraped all targets, and yield a function that runs queries."""
    folder = tmp_path_factory.mktemp("prometheus")
    ports = {name: free_port() for name in PROGRAMS} | {"prometheus": port}
    credentials = {"port": 1161, "username": "reader", "auth_key": "twin-authentication", "priv_key": "twin-encryption"}
    files = write_files(
        folder,
        rack,
        monitoring_snmp={"pdu": credentials},
        monitoring_scrape_interval="1s",
        monitoring_slow_interval="5s",
        monitoring_prometheus_port=ports["prometheus"],
        monitoring_alertmanager_port=ports["alertmanager"],
        monitoring_node_exporter_port=ports["node"],
        monitoring_snmp_exporter_port=ports["snmp"],
    )
    for job, targets in json.loads((files / "targets.json").read_text()).items():
        target_groups = [{"targets": [target["address"]], "labels": target["labels"]} for target in targets]
        (files / f"targets/{job}.json").write_text(json.dumps(target_groups))
    options = {
        "node": [],
        "snmp": [f"--config.file={files}/snmp.yml"],
        "alertmanager": [
            f"--config.file={files}/alertmanager.yml",
            f"--storage.path={folder}/alerts",
            "--cluster.listen-address=",
        ],
        "prometheus": [f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={folder}/data"],
    }

    query = functools.partial(query_prometheus, port)
    with ExitStack() as stack:
        for name, arguments in options.items():
            url = f"http://{HOST}:{ports[name]}/{'-/ready' if name == 'prometheus' else 'metrics'}"
            command = [PROGRAMS[name], f"--web.listen-address={HOST}:{ports[name]}", *arguments]
            stack.enter_context(running(command, folder / f"{name}.log", responds(url)))
        # Rates need two samples. Rules that use recorded series need a second evaluation.
        targets = {"alertmanager": 1, "ipu-machine": 4, "node": 1, "pdu": 2, "prometheus": 1, "vipu-controller": 1}
        until(lambda: up(query) == targets, 60, lambda: f"{up(query)} of {targets}")
        rates = "controller:rpc:rate5m and on () machine:link_corrected_errors:rate5m and on () pdu:bank_current:ratio"
        until(lambda: bool(query(rates)), 60, "rates")
        yield query


def query_prometheus(port: int, query: str) -> list[dict[str, Any]]:
    """Return the result of a Prometheus query."""
    response = json.loads(fetch(f"http://{HOST}:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})))
    assert response["status"] == "success", response
    return list(response["data"]["result"])


def up(query: Query) -> dict[str, int]:
    return {found["metric"]["job"]: int(found["value"][1]) for found in query("count by (job) (up == 1)")}


def queries() -> list[tuple[str, str]]:
    found = []
    for file in sorted((ROLE / "files/dashboards").glob("*.yml")):
        definition = yaml.safe_load(file.read_text())
        for owner, query in grafana.queries(definition):
            values = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            text = f"count by ({values[2]}) ({values[1]})" if values else query
            found.append((f"{file.stem}: {owner}", re.sub(r"\$\w+", ".*", text)))
    return found


def test_every_query_of_a_dashboard_returns_data(prometheus: Query) -> None:
    pending = queries()

    def all_match() -> bool:
        # A busy machine may miss a scrape of a PDU.
        pending[:] = [(owner, query) for owner, query in pending if bool(prometheus(query)) != expected(query)]
        return not pending

    until(all_match, 30, lambda: "\n".join(f"{owner}: {query}" for owner, query in pending))


def expected(query: str) -> bool:
    """Return whether a twin without faults has data for the query."""
    return bool(ALWAYS.search(query)) or not (UNAVAILABLE.search(query) or FAULTS_ONLY.search(query))


def test_no_alert_fires_without_faults(prometheus: Query) -> None:
    names = {found["metric"]["alertname"] for found in prometheus('ALERTS{alertstate="firing"}')}
    # Alerts about the test machine are ignored.
    relevant = {name for name in names if not re.match("Host|Filesystem|Memory|Clock|Array|Bond", name)}
    assert relevant == {"Watchdog"}


def test_values_match_the_rack(prometheus: Query) -> None:
    def value(query: str) -> float:
        until(lambda: len(prometheus(query)) == 1, 30, lambda: f"{query}: {prometheus(query)}")
        return float(prometheus(query)[0]["value"][1])

    assert value("count(ipum_ipu_in_use)") == 16
    assert value("sum(machine:ipus_in_use:sum)") == value("sum(vipu_cluster_used_ipus)") == 8
    assert value("sum(cluster:ipus_used:ratio)") == 0.5
    # Each PDU carries half of the rack, in watts, and has three phases and six banks.
    assert 1000 < value("rack:pdu_power_watts:sum") < 20000
    assert value('count(pdu:phase_current:ratio{host="pdu1"})') == 3
    assert value('count(pdu:bank_current:ratio{host="pdu2"})') == 6
    assert 0 < value("max(pdu:bank_current:ratio)") < 1


def test_the_number_of_series_matches_the_documentation(prometheus: Query) -> None:
    """Use a quarter of a rack, with one controller and two PDUs."""
    (found,) = prometheus('count({job=~"ipu-machine|pdu|vipu-controller"})')
    assert int(found["value"][1]) < 1500


def test_another_prometheus_federates_recorded_series(prometheus: Query, port: int, tmp_path: Path) -> None:
    global_port = free_port()
    files = write_files(
        tmp_path,
        monitoring_name="global",
        monitoring_federate=[{"pod": "twin-1x4", "address": f"{HOST}:{port}"}],
        monitoring_scrape_interval="1s",
        monitoring_prometheus_port=global_port,
        monitoring_parts=["prometheus"],
    )
    command = ["prometheus", f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    command.append(f"--web.listen-address={HOST}:{global_port}")
    with running(command, tmp_path / "log", responds(f"http://{HOST}:{global_port}/-/ready")):
        power = 'pdu:power_watts:current{pod="twin-1x4", host="pdu1"}'
        until(lambda: bool(query_prometheus(global_port, power)), 30, "power")
        assert len(query_prometheus(global_port, 'up{job="ipu-machine", pod="twin-1x4"}')) == 4
        assert query_prometheus(global_port, 'ALERTS{alertname="Watchdog", pod="twin-1x4"}')
        # Raw series are not federated.
        assert not query_prometheus(global_port, "ipum_ipu_power_watts")
