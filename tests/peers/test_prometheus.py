# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Prometheus with the rules of the role `monitoring`, which asks a rack twin whatever dashboards ask."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
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
from exporters import HOST, answers, fetched, free_port, running
from monitoring_files import ROLE, ROOT, written
from waiting import until

PROGRAMS = {
    "prometheus": "prometheus",
    "node": "prometheus-node-exporter",
    "snmp": "prometheus-snmp-exporter",
    "alertmanager": "prometheus-alertmanager",
}
MISSING = [program for program in PROGRAMS.values() if shutil.which(program) is None]
pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(
        bool(MISSING), reason=f"{', '.join(MISSING)} not installed: apt-get install {' '.join(MISSING)}"
    ),
]
BIN = Path(sys.executable).parent
OFFSET = 48  # other twins may run
# The twin has no SNMP in its switches, no BMCs, and nothing wrong.
NOT_THERE = re.compile(r"\b(if[A-Z]|hrProcessorLoad|switch:|ipmi_)|job=\"switch\"")
NOTHING_WRONG = re.compile(r"^(ALERTS|vipu_partition_error|vipu_cluster_test_failures|vipu_cluster_test_ok)\b")
ALWAYS = re.compile(r"or vector\(0\)$")
Query = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A twin with a partition; the pod.yml of it."""
    folder = tmp_path_factory.mktemp("twin") / "state"
    environment = {**os.environ, "TWIN_STATE_DIR": str(folder), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}

    def run(*command: str | Path) -> None:
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr

    try:
        run(BIN / "twin", "up", "--machines", "4", "--offset", str(OFFSET))
        pod = folder / "pod/pod.yml"
        for playbook in ("vipu", "partitions"):
            run(BIN / "ansible-playbook", ROOT / f"playbooks/{playbook}.yml", "-i", pod)
        yield pod
    finally:
        run(BIN / "twin", "down")


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def prometheus(rack: Path, port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """A Prometheus that has asked everybody; what it answers to a query."""
    folder = tmp_path_factory.mktemp("prometheus")
    ports = {name: free_port() for name in PROGRAMS} | {"prometheus": port}
    login = {"port": 1161, "username": "reader", "auth_key": "twin-authentication", "priv_key": "twin-encryption"}
    files = written(
        folder,
        rack,
        monitoring_snmp={"pdu": login},
        monitoring_scrape_interval="1s",
        monitoring_slow_interval="5s",
        monitoring_prometheus_port=ports["prometheus"],
        monitoring_alertmanager_port=ports["alertmanager"],
        monitoring_node_exporter_port=ports["node"],
        monitoring_snmp_exporter_port=ports["snmp"],
    )
    for job, targets in json.loads((files / "targets.json").read_text()).items():
        listed = [{"targets": [target["address"]], "labels": target["labels"]} for target in targets]
        (files / f"targets/{job}.json").write_text(json.dumps(listed))
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

    ask = functools.partial(asked, port)
    with ExitStack() as stack:
        for name, more in options.items():
            url = f"http://{HOST}:{ports[name]}/{'-/ready' if name == 'prometheus' else 'metrics'}"
            command = [PROGRAMS[name], f"--web.listen-address={HOST}:{ports[name]}", *more]
            stack.enter_context(running(command, folder / f"{name}.log", answers(url)))
        # Rates want two samples, and what is recorded of what is recorded a second round.
        wanted = {"alertmanager": 1, "ipu-machine": 4, "node": 1, "pdu": 2, "prometheus": 1, "vipu-controller": 1}
        until(lambda: up(ask) == wanted, 60, lambda: f"{up(ask)} of {wanted}")
        rates = "controller:rpc:rate5m and on () machine:link_corrected_errors:rate5m and on () pdu:bank_current:ratio"
        until(lambda: bool(ask(rates)), 60, "rates")
        yield ask


def asked(port: int, query: str) -> list[dict[str, Any]]:
    """What a Prometheus answers."""
    answer = json.loads(fetched(f"http://{HOST}:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})))
    assert answer["status"] == "success", answer
    return list(answer["data"]["result"])


def up(ask: Query) -> dict[str, int]:
    return {found["metric"]["job"]: int(found["value"][1]) for found in ask("count by (job) (up == 1)")}


def queries() -> list[tuple[str, str]]:
    found = []
    for file in sorted((ROLE / "files/dashboards").glob("*.yml")):
        declared = yaml.safe_load(file.read_text())
        for who, query in grafana.queries(declared):
            values = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            text = f"count by ({values[2]}) ({values[1]})" if values else query
            found.append((f"{file.stem}: {who}", re.sub(r"\$\w+", ".*", text)))
    return found


def test_every_query_of_a_dashboard_has_an_answer(prometheus: Query) -> None:
    waiting = queries()

    def all_answered() -> bool:
        # A busy machine may miss a round of a PDU.
        waiting[:] = [(who, query) for who, query in waiting if bool(prometheus(query)) != expected(query)]
        return not waiting

    until(all_answered, 30, lambda: "\n".join(f"{who}: {query}" for who, query in waiting))


def expected(query: str) -> bool:
    """Whether a twin that is well answers it."""
    return bool(ALWAYS.search(query)) or not (NOT_THERE.search(query) or NOTHING_WRONG.search(query))


def test_nothing_fires_where_nothing_is_wrong(prometheus: Query) -> None:
    names = {found["metric"]["alertname"] for found in prometheus('ALERTS{alertstate="firing"}')}
    # Of the machine that the tests run on, nobody knows how it does.
    ours = {name for name in names if not re.match("Host|Filesystem|Memory|Clock|Array|Bond", name)}
    assert ours == {"Watchdog"}


def test_amounts_are_those_of_the_rack(prometheus: Query) -> None:
    def value(query: str) -> float:
        until(lambda: len(prometheus(query)) == 1, 30, lambda: f"{query}: {prometheus(query)}")
        return float(prometheus(query)[0]["value"][1])

    assert value("count(ipum_ipu_in_use)") == 16
    assert value("sum(machine:ipus_in_use:sum)") == value("sum(vipu_cluster_used_ipus)") == 8
    assert value("sum(cluster:ipus_used:ratio)") == 0.5
    # Each PDU carries its half of the rack, in watts; three phases and six banks.
    assert 1000 < value("rack:pdu_power_watts:sum") < 20000
    assert value('count(pdu:phase_current:ratio{host="pdu1"})') == 3
    assert value('count(pdu:bank_current:ratio{host="pdu2"})') == 6
    assert 0 < value("max(pdu:bank_current:ratio)") < 1


def test_a_rack_takes_the_room_that_the_documentation_tells(prometheus: Query) -> None:
    """This is a quarter of one, with all that there is once beside it."""
    (found,) = prometheus('count({job=~"ipu-machine|pdu|vipu-controller"})')
    assert int(found["value"][1]) < 1500


def test_another_prometheus_takes_what_is_computed(prometheus: Query, port: int, tmp_path: Path) -> None:
    mine = free_port()
    files = written(
        tmp_path,
        monitoring_name="global",
        monitoring_federate=[f"{HOST}:{port}"],
        monitoring_scrape_interval="1s",
        monitoring_prometheus_port=mine,
        monitoring_parts=["prometheus"],
    )
    command = ["prometheus", f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    command.append(f"--web.listen-address={HOST}:{mine}")
    with running(command, tmp_path / "log", answers(f"http://{HOST}:{mine}/-/ready")):
        power = 'pdu:power_watts:current{pod="twin-1x4", host="pdu1"}'
        until(lambda: bool(asked(mine, power)), 30, "power")
        assert len(asked(mine, 'up{job="ipu-machine", pod="twin-1x4"}')) == 4
        assert asked(mine, 'ALERTS{alertname="Watchdog", pod="twin-1x4"}')
        # What is not computed stays where it is.
        assert not asked(mine, "ipum_ipu_power_watts")
