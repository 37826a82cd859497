# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus with the rules of the role `monitoring` scrapes the leader and the followers of one store in etcd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.vipu.contract import admin
from tests.ha.controllers import Controllers, put_rack
from tests.ha.etcd_nodes import EtcdCluster
from tests.peers.exporters import HOST
from tests.peers.programs import needs
from tests.peers.prometheus_of_hosts import prometheus_of_hosts
from tests.peers.test_prometheus import Query
from tests.waiting import until

pytestmark = needs("prometheus", "etcd", packages="prometheus etcd-server")
AGENTS = ("ag1", "ag2")  # nothing listens for them
SECONDS = 180  # busy machines are slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("controllers")


@pytest.fixture(scope="module")
def controllers(folder: Path) -> Iterator[Controllers]:
    """Run three controllers. Each test ends with all of them running."""
    etcd = EtcdCluster(folder / "etcd", 1)
    try:
        # A busy machine may delay the renewal of a lease.
        made = Controllers(folder, f"{etcd.url}/monitoring", options=["--lease-seconds", "15"])
        try:
            addresses = {name: f"127.0.0.{number}" for number, name in enumerate(AGENTS, 8)}
            put_rack(
                made.wait_leader().address,
                [admin.AgentSpec(id=name, host=address, port=9) for name, address in addresses.items()],
            )
            yield made
        finally:
            made.close()
    finally:
        etcd.stop()


@pytest.fixture(scope="module")
def prometheus(controllers: Controllers, folder: Path) -> Iterator[Query]:
    """Run Prometheus with the targets that the role derives from the inventory."""
    server = {"pod_kind": "server", "pod_rack": "rack1", "pod_addresses": {"p2": HOST}}
    store = {"vipu_server_store": controllers.store, "vipu_server_advertise": HOST}
    hosts = {each.name: {"vipu_server_metrics_port": each.metrics_port, **server, **store} for each in controllers.all}
    limit = {"follower_seconds": 10}
    with prometheus_of_hosts(folder, hosts, "c0", "vipu-controller", monitoring_thresholds=limit) as query:
        until(lambda: len(query('up{job="vipu-controller"} == 1')) == 3, SECONDS, "three targets")
        yield query


def values(query: Query, expression: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Return the values of a query by labels. Each combination of the labels must be unique."""
    results = query(expression)
    found = {tuple(each["metric"].get(label, "") for label in labels): float(each["value"][1]) for each in results}
    assert len(found) == len(results), results
    return found


def alerts(query: Query, name: str) -> list[dict[str, Any]]:
    return [each["metric"] for each in query(f'ALERTS{{alertname="{name}", alertstate="firing"}}')]


def wait_alert(query: Query, name: str, hosts: list[str]) -> None:
    """Wait until an alert fires for these hosts only."""
    until(
        lambda: sorted(each["host"] for each in alerts(query, name)) == hosts,
        SECONDS,
        lambda: f"{name} of {hosts}: {alerts(query, name)}",
    )


def active_since(query: Query) -> dict[tuple[str, ...], float]:
    return values(query, 'ALERTS_FOR_STATE{alertname="AgentUnreachable"}', "agent")


def test_objects_count_once_and_alerts_name_the_controller(controllers: Controllers, prometheus: Query) -> None:
    leader = controllers.wait_leader()
    of_leader = leader.metrics()
    until(lambda: len(alerts(prometheus, "AgentUnreachable")) == len(AGENTS), SECONDS, "alerts on agents")
    assert {(each["agent"], each.get("host")) for each in alerts(prometheus, "AgentUnreachable")} == {
        (name, None) for name in AGENTS
    }
    records = values(prometheus, "sum by (kind) (vipu_records)", "kind")
    assert records == {(kind,): of_leader[f'vipu_records{{kind="{kind}"}}'] for (kind,) in records}
    assert records[("agent",)] == len(AGENTS)
    assert values(prometheus, "sum(vipu_cluster_ipus)") == {(): of_leader['vipu_cluster_ipus{cluster="cl0"}']}
    assert values(prometheus, "vipu_controller_leads", "host") == {
        (each.name,): float(each is leader) for each in controllers.all
    }
    assert len(values(prometheus, "vipu_build_info", "host")) == len(controllers.all)

    behind, stopped = (each for each in controllers.all if each is not leader)
    behind.relay.cut()
    wait_alert(prometheus, "ControllerFollowerBehind", [behind.name])
    behind.relay.heal()
    wait_alert(prometheus, "ControllerFollowerBehind", [])
    stopped.kill()
    wait_alert(prometheus, "ControllerReplicaDown", [stopped.name])
    assert not alerts(prometheus, "ControllerDown")
    stopped.start()
    wait_alert(prometheus, "ControllerReplicaDown", [])
    for each in controllers.all:
        each.kill()
    wait_alert(prometheus, "ControllerDown", sorted(each.name for each in controllers.all))
    assert not alerts(prometheus, "ControllerReplicaDown")
    for each in controllers.all:
        each.start()
    controllers.wait_leader(SECONDS)


def test_an_alert_on_an_agent_continues_at_a_takeover(controllers: Controllers, prometheus: Query) -> None:
    until(lambda: len(active_since(prometheus)) == len(AGENTS), SECONDS, "alerts on agents")
    before, former = active_since(prometheus), controllers.wait_leader()
    former.stop()
    leader = controllers.wait_leader(SECONDS)
    exported = f'vipu_agent_up{{host="{leader.name}"}} unless on () vipu_agent_up{{host="{former.name}"}}'
    until(lambda: len(prometheus(exported)) == len(AGENTS), SECONDS, "metrics of the new leader only")
    assert active_since(prometheus) == before
    ipus = "sum(max without (host, instance) (vipu_cluster_ipus))"
    assert values(prometheus, ipus) == {(): leader.metrics()['vipu_cluster_ipus{cluster="cl0"}']}
    former.start()
    until(former.follows, SECONDS, controllers.logs)
