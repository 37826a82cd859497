# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role `monitoring` from several controller hosts: nodes of etcd, and the cluster of Alertmanagers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.playbooks.roles.test_monitoring_settings import ROLE, SERVERS, run_tasks


def test_nodes_of_etcd_are_targets_at_their_metrics_address(tmp_path: Path) -> None:
    """Render them for the host localhost. Metrics on loopback of another host are not reachable."""
    hosts: dict[str, dict[str, Any]] = {
        "server1": SERVERS["server1"],
        "server2": {"etcd_metrics_address": "fd00::2", "etcd_metrics_port": 2391, **SERVERS["server2"]},
        "hidden1": {},
        "hidden2": {"etcd_metrics_address": "", **SERVERS["server2"]},
    }
    nodes = {"etcd_hosts": [*hosts, "localhost"]}
    target = "{% for each in monitoring_pod_targets.etcd %}{{ each.labels.host }}={{ each.address }} {% endfor %}"
    report = next(
        task
        for task in yaml.safe_load((ROLE / "tasks/main.yml").read_text())
        if task["name"] == "Report nodes of etcd without reachable metrics"
    )
    output = run_tasks(
        tmp_path,
        [
            *(
                {"ansible.builtin.add_host": {"name": name, "groups": "controllers", **nodes, **settings}}
                for name, settings in hosts.items()
            ),
            {"ansible.builtin.debug": {"msg": f"<{target}>"}},
            report,
        ],
        monitoring_pod_hosts=list(hosts),
        monitoring_parts=["prometheus"],
    )
    assert "<server1=10.3.1.101:2381 server2=[fd00::2]:2391 localhost=127.0.0.1:2381 >" in output, output
    assert "etcd on hidden1, hidden2 is not scraped" in output, output


@pytest.mark.parametrize(
    ("addresses", "cluster", "alertmanagers"),
    [
        ({"c0": "10.3.1.101"}, "", "10.3.1.101:9093"),
        ({"c0": "127.0.0.1", "c1": "127.0.0.1"}, "", "127.0.0.1:9093"),
        ({"c0": "10.3.1.101", "c1": "127.0.0.1"}, "", "10.3.1.101:9093"),
        (
            {"c0": "10.3.1.101", "c1": "10.3.1.102"},
            "10.3.1.101:9094 --cluster.peer=10.3.1.102:9094",
            "10.3.1.101:9093 10.3.1.102:9093",
        ),
        # The port of the cluster is never open on all addresses.
        (
            {"c0": "0.0.0.0", "c1": "0.0.0.0"},
            "10.9.1.0:9094 --cluster.peer=10.9.1.1:9094",
            "127.0.0.1:9093 10.9.1.1:9093",
        ),
    ],
)
def test_alertmanagers_with_network_addresses_form_a_cluster(
    tmp_path: Path, addresses: dict[str, str], cluster: str, alertmanagers: str
) -> None:
    hosts = {
        name: {"pod_addresses": {"p2": f"10.9.1.{number}"}, "monitoring_address": address}
        for number, (name, address) in enumerate(addresses.items())
    }
    parts = {"c1": {"monitoring_parts": ["alertmanager", "prometheus"]}}  # c0 has all parts by default
    add: list[dict[str, Any]] = [
        {"ansible.builtin.add_host": {"name": name, "groups": "controllers", **settings, **parts.get(name, {})}}
        for name, settings in hosts.items()
    ]
    arguments = "{{ monitoring_services.alertmanager.arguments | select('match', '--cluster') | join(' ') }}"
    shown = f"<{arguments}> <{{{{ monitoring_alertmanagers | join(' ') }}}}>"
    output = run_tasks(
        tmp_path,
        [*add, {"ansible.builtin.debug": {"msg": shown}, "vars": {"inventory_hostname": "c0", **hosts["c0"]}}],
        monitoring_pod_hosts=list(hosts),
    )
    assert f"<--cluster.listen-address={cluster}> <{alertmanagers}>" in output, output
