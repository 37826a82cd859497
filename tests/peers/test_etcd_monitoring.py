# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus with the rules of the role `monitoring` scrapes the nodes of etcd that the role `etcd` configures."""

from __future__ import annotations

import functools
import math
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
import yaml

from tests import ROOT
from tests.ha.etcd_role import NODES, Applied, can_write, running_nodes
from tests.peers.exporters import fetch, metrics, responds
from tests.peers.programs import needs
from tests.peers.prometheus_of_hosts import prometheus_of_hosts
from tests.peers.test_prometheus import Query, queries
from tests.waiting import until

pytestmark = needs("prometheus", "etcd", "openssl", packages="prometheus etcd-server openssl")
AGGREGATED = re.compile(r"(count|max)(?! by \(host\))")  # queries whose series have no host
SECONDS = 180  # busy machines are slow
Nodes = tuple[Applied, dict[str, "subprocess.Popen[bytes]"]]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with running_nodes(tmp_path_factory.mktemp("etcd")) as made:
        yield made


@pytest.fixture(scope="module")
def prometheus(nodes: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """Run Prometheus with the targets that the role derives from the inventory."""
    folder = tmp_path_factory.mktemp("prometheus")
    settings = {"etcd_hosts": list(NODES), "etcd_metrics_port": nodes[0].metrics_port, "pod_rack": "rack1"}
    hosts = {
        name: {"pod_addresses": {"p2": address}, "pod_kind": "server", **settings} for name, address in NODES.items()
    }
    with prometheus_of_hosts(folder, hosts, "n1", "etcd") as query:
        yield query


def wait_alerts(query: Query, expected: dict[str, list[str]]) -> None:
    """Wait until these alerts on etcd fire for these hosts, and no others."""

    def firing() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in query('ALERTS{alertname=~"Etcd.*", alertstate="firing"}'):
            found.setdefault(each["metric"]["alertname"], []).append(each["metric"].get("host", ""))
        return {name: sorted(hosts) for name, hosts in found.items()}

    until(lambda: firing() == expected, SECONDS, lambda: f"{expected}: {firing()}")


def test_alerts_report_the_first_lost_node_and_the_lost_majority(nodes: Nodes, prometheus: Query) -> None:
    applied, processes = nodes
    has_leader = 'etcd_server_has_leader{job="etcd", rack="rack1"} == 1'
    until(lambda: len(prometheus(has_leader)) == len(NODES), SECONDS, "metrics of three nodes with a leader")
    wait_alerts(prometheus, {})
    for expected, name in (
        ({"EtcdNodeDown": ["n1"]}, "n1"),
        ({"EtcdNodeDown": list(NODES), "EtcdWithoutLeader": [""]}, "n2"),
    ):
        processes[name].kill()
        processes[name].wait()
        wait_alerts(prometheus, expected)
    for name in ("n1", "n2"):
        processes[name] = applied.start(name)
    wait_alerts(prometheus, {})


def test_alerts_on_disks_have_data(nodes: Nodes, prometheus: Query) -> None:
    location = nodes[0].location("client.crt", "client.key")

    def with_data(query: str) -> bool:
        assert can_write(location)  # without changes, no disk is flushed
        return {each["metric"]["host"] for each in prometheus(query)} == set(NODES)

    for query in ("etcd:database_used:ratio > 0 < 0.8", "etcd:flush_duration_seconds:p99_5m > 0"):
        until(functools.partial(with_data, query), SECONDS, query)
    assert not prometheus('{__name__=~"grpc_server_.+|etcd_debugging_.+", job="etcd"}')


def test_every_query_of_the_dashboard_returns_data_of_all_nodes(nodes: Nodes, prometheus: Query) -> None:
    location = nodes[0].location("client.crt", "client.key")
    pending = {owner: query for owner, query in queries() if owner.startswith("etcd: ")}
    assert len(pending) > 12

    def is_complete(query: str) -> bool:
        found = [each["metric"].get("host") for each in prometheus(query) if not math.isnan(float(each["value"][1]))]
        if AGGREGATED.match(query):
            return found == [None]
        return set(found) == set(NODES)

    def all_complete() -> bool:
        assert can_write(location)  # without changes, no disk is flushed
        for owner in [owner for owner, query in pending.items() if is_complete(query)]:
            del pending[owner]
        return not pending

    until(all_complete, SECONDS, lambda: str(pending))


def test_the_port_of_the_metrics_serves_queried_metrics_and_no_records(nodes: Nodes) -> None:
    applied, _processes = nodes
    url = f"http://{NODES['n3']}:{applied.metrics_port}"
    until(responds(f"{url}/metrics"), SECONDS, "metrics")
    queried = yaml.safe_load((ROOT / "tests/unit/roles/monitoring/exported.yml").read_text())["etcd"]
    assert set(queried) <= set(metrics(fetch(f"{url}/metrics")))
    request = urllib.request.Request(f"{url}/v3/kv/range", b'{"key": "AA=="}', {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(request, timeout=10)
