# SPDX-License-Identifier: GPL-3.0-or-later
"""The workflow *Order a vPOD* of AWX, with ansible-runner, a real OpenStack and the controller of a twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from openstack.connection import Connection as Cloud

from tests.integration.bringup.own_twin import OwnTwin
from tests.openstack.vpod_order import partitions, roles, servers
from tests.unit.collection.awx.content import load
from tests.workflow_jobs import HostJobs

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

ANSWERS = ("vpod_name", "vpod_tenant", "vpod_poplar_server", "vpod_image", "vpod_flavor")


def test_an_order_is_created_rolled_back_or_denied(
    admin: Cloud, twin: OwnTwin, order: dict[str, Any], play: Callable[..., Any], tmp_path: Path
) -> None:
    answers = {name: order[name] for name in ANSWERS} | {
        "vpod_ipus": str(order["vpod_ipus"]),
        "vpod_public_keys": "\n".join(order["vpod_public_keys"]),
    }
    variables = {name: value for name, value in order.items() if name not in answers}
    choices = {"awx_vpod_images": [order["vpod_image"]], "awx_vpod_flavors": [order["vpod_flavor"], "none-such"]}
    environment = {"TWIN_STATE_DIR": str(twin.state)}
    jobs = HostJobs(tmp_path, twin.inventory, variables, environment, load(**choices))

    denied = jobs.run_workflow("Order a vPOD", answers, approved=False)
    assert (list(denied.jobs), denied.status) == ([], "failed")

    failed = jobs.run_workflow("Order a vPOD", {**answers, "vpod_flavor": "none-such"})
    assert {name: job.status for name, job in failed.jobs.items()} == {"create": "failed", "rollback": "failed"}
    assert failed.status == "failed"
    assert failed.jobs["create"].artifacts["vpod_is_new"] is True
    assert "Its new objects were deleted." in " ".join(failed.jobs["rollback"].stdout.split())
    assert (partitions(twin), servers(admin, order), roles(admin, "tenant-a")) == ({}, {}, [])

    created = jobs.run_workflow("Order a vPOD", answers)
    assert {name: job.status for name, job in created.jobs.items()} == {"create": "successful", "access": "successful"}
    access = created.jobs["access"].artifacts["vpod_access"]
    assert access["partition"]["state"] == "ACTIVE"
    assert f"{order['vpod_name']}-poplar" in access["vms"]
    [webhook] = jobs.sent
    assert isinstance(webhook.body, dict)
    assert (webhook.name, webhook.body["results"]["vpod_access"]) == ("POD results (webhook)", access)

    # A second order of the same name with a mistake keeps the vPOD.
    again = jobs.run_workflow("Order a vPOD", {**answers, "vpod_ipus": "32"})
    assert {name: job.status for name, job in again.jobs.items()} == {"create": "failed", "rollback": "failed"}
    assert again.jobs["create"].artifacts["vpod_is_new"] is False
    assert "Nothing was deleted" in again.jobs["rollback"].stdout
    assert partitions(twin) == {order["vpod_name"]: virmgrpc.PS_ACTIVE}
    assert len(servers(admin, order)) == 2
