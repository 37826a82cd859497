# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of the dashboards for the documentation: ``make dashboards``.

A Prometheus with the rules of the role `monitoring` scrapes a rack twin and three controllers on etcd. It does so for
four minutes, in a network namespace of its own. Meanwhile, a partition is created, a machine stops, and a cable is
unplugged. Others have faults, and the server of the leader fails. ``tools.dashboards`` draws the panels from the models
that Grafana imports. Needs the Debian packages prometheus, prometheus-snmp-exporter and etcd-server.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.openipu.pod.plugins.plugin_utils import grafana

from openipu.twin.devices import logins
from tests import ROOT
from tests.peers.exporters import HOST, fetch, responds, running
from tests.peers.monitoring_files import ROLE, write_files
from tests.peers.recorded_servers import Servers, running_servers, write_inventory
from tests.peers.test_prometheus import query_prometheus
from tests.waiting import until
from tools.dashboards.data import Series, series
from tools.dashboards.drawing import picture

BIN = Path(sys.executable).parent
PORT, SNMP_PORT = 9090, 9116
READER = {
    "port": logins.SNMP_PORT,
    "username": logins.READER,
    "auth_key": logins.AUTH_KEY,
    "priv_key": logins.PRIV_KEY,
}
SECONDS = 60.0  # until all targets respond
STEP = 5  # seconds between two scrapes, and between two points of a line
END = 240.0  # seconds of the recording
INSIDE = "OPENIPU_DASHBOARDS"  # set in the network namespace
LOSS, RETURN, TEST = 180.0, 210.0, 225.0  # seconds: of the server of the leader, and of a cluster test
# What else happens, with its second.
COMMANDS: tuple[tuple[float, Sequence[str]], ...] = (
    (30, ("vipu", "create", "partition", "trial", "--size", "4", "--allocation", "team-a")),
    (60, ("twin", "fault", "hot", "ag03", "45")),
    (90, ("twin", "fault", "errors", "ag03:7", "40000")),
    (105, ("twin", "fault", "unplug", "tor1:Ethernet11/1")),
    (120, ("twin", "stop-machine", "ag05")),
    (150, ("twin", "fault", "ipu", "ag03", "2")),
)
# Values of the variables of each dashboard. Others select everything.
DASHBOARDS: dict[str, dict[str, str]] = {
    "rack": {},
    "machine": {"host": "ag03"},
    "partition": {},
    "network": {},
    "power": {},
    "etcd": {},
}
JOBS = ("ipu-machine", "vipu-controller", "etcd", "pdu", "switch")


def run(state: Path, *command: str | Path, check: bool = True, **variables: str) -> None:
    """Run a program of this project. Raises CalledProcessError unless ``check`` is False."""
    environment = {**os.environ, "TWIN_STATE_DIR": str(state), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), **variables}
    environment["HOME"] = str(state.parent)
    subprocess.run([BIN / command[0], *command[1:]], env=environment, cwd=ROOT, check=check, timeout=300)


def wait(servers: Servers, end: float) -> None:
    """Wait until a time. Meanwhile, a client calls the leader."""
    while (left := end - time.time()) > 0:
        servers.call()
        threading.Event().wait(min(left, STEP))


def record(state: Path, servers: Servers) -> float:
    """Make everything happen, and return the time of the start."""
    address = {"VIPU_CLI_API_HOST": servers.addresses}
    test = ("vipu-admin", "test", "cluster", "cl0", "--cabling")  # fails for the machine without power
    events: list[tuple[float, Callable[[], None]]] = [
        *((second, functools.partial(run, state, *command, **address)) for second, command in COMMANDS),
        (LOSS, servers.lose),
        (RETURN, servers.restore),
        (TEST, functools.partial(run, state, *test, check=False, **address)),
    ]
    start = time.time()
    for second, happen in events:
        wait(servers, start + second)
        happen()
    wait(servers, start + END)
    return start


def read(target: Mapping[str, Any], variables: Mapping[str, str], start: float) -> list[Series]:
    """Return the series of a panel's query, over the recording or at its end."""
    query = target["expr"]
    for name, value in variables.items():
        query = query.replace(f"${name}", value)
    arguments = {"query": query, "time": start + END}
    if target["range"]:
        arguments = {"query": query, "start": start, "end": start + END, "step": STEP}
    method = "query_range" if target["range"] else "query"
    response = json.loads(fetch(f"http://{HOST}:{PORT}/api/v1/{method}?{urllib.parse.urlencode(arguments)}"))
    return series(target, response["data"]["result"])


def draw(name: str, start: float) -> str:
    """Return the picture of a dashboard."""
    definition = yaml.safe_load((ROLE / f"files/dashboards/{name}.yml").read_text())
    model = grafana.dashboard(definition)
    variables = dict.fromkeys(definition["variables"], ".*") | DASHBOARDS[name]
    data = {
        panel["id"]: [each for target in panel.get("targets", ()) for each in read(target, variables, start)]
        for panel in model["panels"]
    }
    return picture(model, data, (start, start + END))


def draw_all(folder: Path, inventory: Path, servers: Servers) -> None:
    """Record the twin, which runs, and write the pictures."""
    files = write_files(
        folder,
        inventory,
        "server1",
        monitoring_parts=["prometheus", "snmp_exporter"],
        monitoring_scrape_interval=f"{STEP}s",
        monitoring_slow_interval=f"{2 * STEP}s",
        monitoring_snmp_exporter_port=SNMP_PORT,
        monitoring_snmp=dict.fromkeys(("pdu", "switch"), READER),
        monitoring_prometheus_port=PORT,
    )
    targets = json.loads((files / "targets.json").read_text())
    for job in JOBS:
        groups = [{"targets": [each["address"]], "labels": each["labels"]} for each in targets[job]]
        (files / f"targets/{job}.json").write_text(json.dumps(groups))
    total = 1 + sum(len(targets[job]) for job in JOBS)  # with Prometheus itself
    command = ["prometheus", f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command.append(f"--web.listen-address={HOST}:{PORT}")
    exporter = ["prometheus-snmp-exporter", f"--config.file={files}/snmp.yml"]
    exporter.append(f"--web.listen-address={HOST}:{SNMP_PORT}")
    with (
        running(exporter, folder / "exporter.log", responds(f"http://{HOST}:{SNMP_PORT}/metrics")),
        running(command, folder / "prometheus.log", responds(f"http://{HOST}:{PORT}/-/ready")),
    ):
        until(lambda: len(query_prometheus(PORT, "up == 1")) == total, SECONDS, f"metrics of {total} targets")
        start = record(folder / "state", servers)
        for name in DASHBOARDS:
            (ROOT / f"docs/pictures/dashboard-{name}.svg").write_text(draw(name, start))


def main() -> None:
    """Run the twin and the servers, record them, and write the pictures."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = folder / "state"
        try:
            with running_servers(folder) as servers:
                run(state, "twin", "up", "--inventory", write_inventory(folder / "twin"))
                inventory = write_inventory(folder / "site", servers)
                run(state, "ansible-playbook", "playbooks/site.yml", "-i", inventory)
                draw_all(folder, inventory, servers)
        finally:
            run(state, "twin", "down")


if __name__ == "__main__":
    if os.environ.get(INSIDE):
        main()
    else:
        command = [
            "unshare",
            "--user",
            "--map-root-user",
            "--net",
            sys.executable,
            "-m",
            "tests.peers.dashboard_pictures",
        ]
        sys.exit(subprocess.run(command, cwd=ROOT, env={**os.environ, INSIDE: "1"}, check=False).returncode)
