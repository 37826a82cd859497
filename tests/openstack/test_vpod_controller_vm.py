# SPDX-License-Identifier: GPL-3.0-or-later
"""Orders of vPODs whose controller VM does not start, on a real OpenStack and the controller of a twin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from openstack.connection import Connection as Cloud

from tests.integration.bringup.own_twin import OwnTwin, changed
from tests.openstack.neutron_pod import Plan
from tests.openstack.vpod_order import partitions, servers

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def statuses(admin: Cloud, order: dict[str, Any]) -> dict[str, str]:
    return {name: server.status for name, server in servers(admin, order).items()}


def objects(admin: Cloud, plan: Plan, name: str) -> tuple[list[str], list[str], list[str]]:
    """Return the ports of a vPOD, the networks of the POD that tenant-a uses, and the vPODs in its tags."""
    project = admin.identity.find_project("tenant-a", ignore_missing=False)
    networks = {network.id: network.name for network in admin.network.networks()}
    policies = admin.network.rbac_policies(target_project_id=project.id)
    shared = [networks[each.object_id] for each in policies if each.object_id in networks]
    return (
        [port.name for port in admin.network.ports() if port.name.startswith(f"{name}-")],
        sorted(each for each in shared if each.startswith(plan.name)),
        [tag for tag in project.tags if tag.endswith(name)],
    )


def test_an_order_whose_controller_vm_fails_is_completed_or_released(
    admin: Cloud,
    plan: Plan,
    twin: OwnTwin,
    order: dict[str, Any],
    play: Callable[..., Any],
    flavor_without_host: str,
) -> None:
    name = order["vpod_name"]
    controller = f"{name}-controller"
    before = objects(admin, plan, name)
    assert (before[0], before[2]) == ([], [])

    def fail() -> None:
        failed = play("vpod_create.yml", check=False, vpod_controller_flavor=flavor_without_host)
        output = " ".join(failed.stdout.split())
        assert failed.returncode != 0
        assert output.count("Task failed: ") == 1
        found = admin.compute.find_server(controller, ignore_missing=False)
        assert (
            f"Cannot create server '{controller}': it failed to start: No valid host was found. "
            f"Nova keeps it with the status ERROR and the ID {found.id}. "
            "Correct the cause, and run the task again, which recreates it." in output
        )
        assert (
            f"The run for vPOD '{name}' is incomplete. The vPOD has at least its record in project 'tenant-a', "
            f"allocation {name}, shares of networks, VM {controller}. vpod_info.yml shows its allocation, partition "
            "and VMs. Correct the error above. Then run vpod_create.yml again to create the missing objects, or "
            "vpod_destroy.yml to delete the vPOD. In AWX, the workflow 'Order a vPOD' deletes a new vPOD itself. "
            "Then order it again." in output
        )
        # The steps after the controller VM did not run.
        assert (statuses(admin, order), partitions(twin)) == ({controller: "ERROR"}, {})

    fail()
    shown = play("vpod_info.yml").stdout
    assert controller in shown
    assert "ERROR" in shown
    assert "is incomplete" not in play("vpod_create.yml").stdout
    assert statuses(admin, order) == {controller: "ACTIVE", f"{name}-poplar": "ACTIVE"}
    assert partitions(twin) == {name: virmgrpc.PS_ACTIVE}
    assert changed(play("vpod_create.yml")) == 0
    play("vpod_destroy.yml")
    assert objects(admin, plan, name) == before

    fail()
    play("vpod_destroy.yml", vpod_controller_flavor=flavor_without_host)
    assert (servers(admin, order), partitions(twin)) == ({}, {})
    assert objects(admin, plan, name) == before
    assert changed(play("vpod_destroy.yml")) == 0
