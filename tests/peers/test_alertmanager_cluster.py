# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts with Prometheus and Alertmanager, configured by the role `monitoring`, send each alert once."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.peers.exporters import fetch, metrics, responds, running
from tests.peers.monitoring_files import write_files
from tests.peers.programs import needs
from tests.ports import free_port
from tests.waiting import until

pytestmark = needs("prometheus", "prometheus-alertmanager", packages="prometheus prometheus-alertmanager")
ADDRESSES = {"c0": "127.0.3.1", "c1": "127.0.3.2"}
SECONDS = 180  # the second Alertmanager waits for 15 s, and busy machines are slow


@dataclass
class Host:
    """Host with Prometheus and Alertmanager, which have the URLs of their endpoints."""

    files: Path
    alertmanager: str
    prometheus: str
    process: subprocess.Popen[bytes]  # of Alertmanager

    def cluster(self) -> tuple[str, int]:
        """Return the state of the cluster and its number of members."""
        found = json.loads(fetch(f"{self.alertmanager}/api/v2/status"))["cluster"]
        return found["status"], len(found.get("peers", ()))

    def total(self, metric: str, **labels: str) -> float:
        """Return the sum of a metric of Alertmanager."""
        series = metrics(fetch(f"{self.alertmanager}/metrics")).get(metric, ())
        return sum(value for found, value in series if labels.items() <= found.items())

    def receivers(self) -> set[str]:
        """Return the addresses of the Alertmanagers that receive the alerts of Prometheus."""
        found = json.loads(fetch(f"{self.prometheus}/api/v1/alertmanagers"))["data"]["activeAlertmanagers"]
        return {each["url"].removesuffix("/api/v2/alerts") for each in found}

    def lose_machines(self, *names: str) -> None:
        """Make Prometheus scrape agents on which nothing listens, in one group of alerts."""
        targets = [
            {"targets": [f"127.0.0.9:{number}"], "labels": {"host": name}} for number, name in enumerate(names, 1)
        ]
        file = self.files / "targets/ipu-machine.json"
        complete = file.with_suffix(".new")
        complete.write_text(json.dumps(targets))
        complete.replace(file)


@pytest.fixture
def notifications() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve a webhook. Yield its URL and the received notifications."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", received
        server.shutdown()


@pytest.fixture
def hosts(notifications: tuple[str, list[dict[str, Any]]], tmp_path: Path) -> Iterator[list[Host]]:
    """Run both hosts. Alerts fire without waiting times."""
    inventory = tmp_path / "inventory.yml"
    settings = {"pod_kind": "server", "pod_rack": "rack1"}
    servers = {name: {"pod_addresses": {"p2": address}, **settings} for name, address in ADDRESSES.items()}
    inventory.write_text(yaml.safe_dump({"controllers": {"hosts": servers}}))
    ports = {f"monitoring_{name}_port": free_port() for name in ("prometheus", "alertmanager", "cluster")}
    with ExitStack() as stack:
        found = []
        for name, address in ADDRESSES.items():
            folder = tmp_path / name
            folder.mkdir()
            files = write_files(
                folder,
                inventory,
                name,
                vipu_api_host="127.0.0.1",
                monitoring_name="pod1",
                monitoring_parts=["alertmanager", "prometheus"],
                monitoring_address="{{ pod_addresses.p2 }}",
                monitoring_scrape_interval="1s",
                monitoring_alert_data=str(folder / "alerts"),
                monitoring_alert_receivers=[{"name": "operations", "webhook_configs": [{"url": notifications[0]}]}],
                monitoring_alert_route={"group_wait": "1s", "group_interval": "1s"},
                **ports,
            )
            rules = files / "rules/alerts.yml"
            rules.write_text(re.sub(r"for: \w+", "for: 0s", rules.read_text()))
            urls = [f"http://{address}:{ports[f'monitoring_{part}_port']}" for part in ("alertmanager", "prometheus")]
            command = ["prometheus-alertmanager", *yaml.safe_load((files / "alertmanager_arguments.yml").read_text())]
            process = stack.enter_context(running(command, folder / "alertmanager.log", responds(f"{urls[0]}/-/ready")))
            command = ["prometheus", f"--config.file={files}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
            command.append(f"--web.listen-address={urls[1].removeprefix('http://')}")
            stack.enter_context(running(command, folder / "prometheus.log", responds(f"{urls[1]}/-/ready")))
            found.append(Host(files, *urls, process))
        until(
            lambda: {host.cluster() for host in found} == {("ready", 2)},
            SECONDS,
            lambda: str([host.cluster() for host in found]),
        )
        yield found


def test_each_alert_is_sent_once_and_also_after_the_loss_of_a_host(
    hosts: list[Host], notifications: tuple[str, list[dict[str, Any]]]
) -> None:
    def sent() -> list[list[str]]:
        """Return the hosts of each notification."""
        return [sorted(alert["labels"]["host"] for alert in each["alerts"]) for each in notifications[1]]

    for host in hosts:
        until(
            lambda host=host: host.receivers() == {each.alertmanager for each in hosts}, SECONDS, "both receive alerts"
        )
        host.lose_machines("ag1")
    until(sent, SECONDS, "a notification")
    until(
        lambda: any(host.total("alertmanager_nflog_gossip_messages_propagated_total") for host in hosts),
        SECONDS,
        "the other Alertmanager has received the notification log",
    )
    sends = "alertmanager_notifications_total"
    senders = [host for host in hosts if host.total(sends, integration="webhook")]
    assert len(senders) == 1, sent()
    (remaining,) = (host for host in hosts if host not in senders)
    senders[0].process.kill()
    for host in hosts:
        host.lose_machines("ag1", "ag2")
    # The remaining one sends the second alert of the group, after it has not sent the first one.
    until(lambda: ["ag1", "ag2"] in sent(), SECONDS, lambda: str(sent()))
    assert sent() == [["ag1"], ["ag1", "ag2"]]
    assert remaining.total(sends, integration="webhook") == 1
