# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the role `monitoring` from several controller hosts: nodes of etcd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
