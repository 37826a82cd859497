# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas of Nova, which the task of openstack_pod_server checks before the first write."""

from __future__ import annotations

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import network
from tests.unit.collection.openstack.task_support import ATTACHED, NETWORKS, NOVA, OPTIONS, SERVER, run


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"maxTotalInstances": 1, "totalInstancesUsed": 1},
            "Cannot start server 'vm': the quota of the project is 1 server, and 1 is used. Raise it to at least 2 (",
        ),
        (
            {"maxTotalCores": 40, "totalCoresUsed": 38},
            "Cannot start server 'vm': it needs 4 vCPUs, the quota of the project is 40, and 38 are used. Raise it to "
            "at least 42 (openstack quota set --cores 42 p1).",
        ),
        (
            {"maxTotalRAMSize": 2000, "totalRAMUsed": 0},
            "Cannot start server 'vm': it needs 2048 MB of memory, the quota of the project is 2000",
        ),
    ],
)
def test_quotas_of_nova_are_checked_before_the_first_write(limits: dict[str, int], message: str) -> None:
    read = {"GET /servers/detail": {"servers": []}, "GET /limits": {"limits": {"absolute": limits}}}
    cloud = FakeCloud({**NETWORKS, **NOVA, **read})
    for check_mode in (True, False):
        with pytest.raises(UserError) as failure:
            run(OPENSTACK_POD_SERVER, cloud, check_mode, **OPTIONS)
        assert failure.value.message.startswith(message)
    assert cloud.writes == []
    # Existing servers need no quota.
    cloud.responses["GET /servers/detail"] = {"servers": [SERVER]}
    cloud.responses["GET /ports"] = {"ports": [ATTACHED]}
    assert run(OPENSTACK_POD_SERVER, cloud, True, **OPTIONS)["servers"]["unchanged"] == ["vm"]


@pytest.mark.parametrize(
    ("count", "quota", "message"),
    [
        (2, "Cores", "servers 'vm1' and 'vm2': they need 8 vCPUs, the quota of the project is 0, and 0 are used."),
        (3, "Instances", "servers 'vm1', 'vm2' and 'vm3': the quota of the project is 0 servers, and 0 are used."),
        (48, "Instances", "servers 'vm1', 'vm2', 'vm3' and 45 more: the quota of the project is 0 servers, and 0 are"),
    ],
)
def test_messages_about_quotas_name_few_servers(count: int, quota: str, message: str) -> None:
    limits = {f"maxTotal{quota}": 0, f"total{quota}Used": 0}
    read = {"GET /servers/detail": {"servers": []}, "GET /limits": {"limits": {"absolute": limits}}}
    servers = [{"name": f"vm{n}", "image": "ubuntu", "flavor": "small"} for n in range(1, count + 1)]
    with pytest.raises(UserError) as failure:
        run(OPENSTACK_POD_SERVER, FakeCloud({**NETWORKS, **NOVA, **read}), pod="pod", servers=servers)
    assert failure.value.message.startswith(f"Cannot start {message}")


@pytest.mark.parametrize("allowed", [True, False])
def test_quotas_of_another_project_include_its_private_flavors(allowed: bool) -> None:
    """Without ``is_public``, Nova lists only the public flavors and those of the project of the credentials."""
    team = "0" * 32
    flavor = {"name": "small", "id": "f1", "vcpus": 4, "ram": 2048, "os-flavor-access:is_public": False}
    access = [{"flavor_id": "f1", "tenant_id": team if allowed else "other"}]
    cloud = FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /networks": {"networks": [network("data", project_id=team)]},
            "GET /projects": {"projects": [{"id": team, "name": "team"}]},
            "GET /servers/detail": {"servers": []},
            "GET /flavors/detail": {"flavors": [flavor]},
            "GET /flavors/f1/os-flavor-access": {"flavor_access": access},
            "GET /limits": {"limits": {"absolute": {"maxTotalCores": 3, "totalCoresUsed": 0}}},
        }
    )
    if allowed:
        with pytest.raises(UserError, match="it needs 4 vCPUs, the quota of the project is 3"):
            run(OPENSTACK_POD_SERVER, cloud, True, project="team", **OPTIONS)
    else:
        assert run(OPENSTACK_POD_SERVER, cloud, True, project="team", **OPTIONS)["servers"]["created"] == ["vm"]
    assert ("GET /flavors/detail", {"is_public": "None"}) in cloud.reads


def test_unlimited_quotas_of_nova_reject_nothing() -> None:
    absolute = {"maxTotalInstances": -1, "totalInstancesUsed": 9, "maxTotalCores": 4, "totalCoresUsed": 0}
    read = {"GET /servers/detail": {"servers": []}, "GET /limits": {"limits": {"absolute": absolute}}}
    result = run(OPENSTACK_POD_SERVER, FakeCloud({**NETWORKS, **NOVA, **read}), True, **OPTIONS)
    assert result["servers"]["created"] == ["vm"]
