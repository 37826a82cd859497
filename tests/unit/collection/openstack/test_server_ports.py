# SPDX-License-Identifier: GPL-3.0-or-later
"""New ports of servers. Only a new server gets ports."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests import ROOT
from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.task_support import ATTACHED, NETWORKS, NOVA, OPTIONS, SERVER, run


def cloud(server: dict[str, Any], *ports: dict[str, Any]) -> FakeCloud:
    return FakeCloud(
        {**NETWORKS, **NOVA, "GET /servers/detail": {"servers": [server]}, "GET /ports": {"ports": list(ports)}}
    )


def test_a_new_port_of_an_existing_server_is_rejected() -> None:
    networks = [{"network": "data"}, {"network": "data", "name": "storage"}]
    options = {**OPTIONS, "servers": [{**OPTIONS["servers"][0], "networks": networks}]}  # type: ignore[dict-item]
    fake = cloud(SERVER, ATTACHED)
    for check_mode in (True, False):
        with pytest.raises(UserError) as failure:
            run(OPENSTACK_POD_SERVER, fake, check_mode, **options)
        assert failure.value.message == (
            "Cannot add port 'vm-storage' to server 'vm': only a new server gets ports, and this one exists. Nothing "
            "was changed. Omit this network, or remove the server first, which loses the data on its disks."
        )
    assert fake.writes == []
    failed = {**SERVER, "status": "ERROR"}  # it never ran, so it is recreated with all ports
    result = run(OPENSTACK_POD_SERVER, cloud(failed, ATTACHED), True, **options)
    assert (result["servers"]["recreated"], result["ports"]["created"]) == (["vm"], ["vm-storage"])
    result = run(OPENSTACK_POD_SERVER, cloud(SERVER, ATTACHED), True, state="absent", **options)
    assert result["servers"]["removed"] == ["vm"]


def test_reports_of_vpods_do_not_plan_ports() -> None:
    """A report must not fail because the tenant got a further network."""
    [report] = yaml.safe_load((ROOT / "roles/vpod/tasks/info.yml").read_text())
    servers = [task["openipu.pod.openstack_pod_server"]["servers"] for task in report["block"] if "VM" in task["name"]]
    assert servers == [[{"name": "{{ " + vm + ".name }}"}] for vm in ("vpod_poplar", "vpod_controller")]
    options = {"pod": "pod", "servers": [{"name": "vm"}]}
    assert run(OPENSTACK_POD_SERVER, cloud(SERVER), True, **options)["details"]["vm"]["id"] == "s1"
