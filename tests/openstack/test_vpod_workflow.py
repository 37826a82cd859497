# SPDX-License-Identifier: GPL-3.0-or-later
"""The workflow *Order a vPOD* of AWX, with ansible-runner, a real OpenStack and the controller of a twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc
from openstack.connection import Connection as Cloud

from tests.integration.bringup.own_twin import OwnTwin
from tests.openstack.vpod_order import partitions, roles, servers
from tests.unit.collection.awx.content import load
from tests.workflow_jobs import HostJobs
from tools.ee.workflow import Workflow
from tools.openstack.site import ADMIN_CLOUD

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

# AWX provides its OpenStack credential as this cloud.
CLOUD = "devstack"
ANSWERS = ("vpod_name", "vpod_tenant", "vpod_poplar_server", "vpod_image", "vpod_flavor")


@pytest.fixture
def answers(admin: Cloud, order: dict[str, Any]) -> dict[str, Any]:
    """Answers to the survey, as the panel of Horizon gives them."""
    given = {name: order[name] for name in ANSWERS}
    given["vpod_tenant_id"] = admin.identity.find_project(order["vpod_tenant"], ignore_missing=False).id
    return given | {"vpod_ipus": str(order["vpod_ipus"]), "vpod_public_keys": "\n".join(order["vpod_public_keys"])}


@pytest.fixture
def jobs(
    cloud: Path,
    twin: OwnTwin,
    order: dict[str, Any],
    answers: dict[str, Any],
    flavor_without_host: str,
    tmp_path: Path,
) -> HostJobs:
    """Runs of the workflow with a credential of the provider."""
    settings = yaml.safe_load((cloud / "clouds.yaml").read_text())["clouds"][ADMIN_CLOUD]
    credential = tmp_path / "clouds.yaml"
    credential.write_text(yaml.safe_dump({"clouds": {CLOUD: settings}}))
    environment = {"TWIN_STATE_DIR": str(twin.state), "OS_CLIENT_CONFIG_FILE": str(credential), "OS_CLOUD": CLOUD}
    variables = {name: order[name] for name in order if name not in answers and name != "openstack_connection"}
    choices = {
        "awx_vpod_images": [order["vpod_image"]],
        "awx_vpod_flavors": [order["vpod_flavor"], flavor_without_host, "none-such"],
    }
    return HostJobs(tmp_path, twin.inventory, variables, environment, load(**choices, awx_vpod_controller_vm=True))


def statuses(workflow: Workflow) -> dict[str, str]:
    return {name: job.status for name, job in workflow.jobs.items()}


def output(workflow: Workflow, node: str) -> str:
    return " ".join(workflow.jobs[node].stdout.split())


def test_an_order_is_created_rolled_back_or_denied(
    admin: Cloud,
    twin: OwnTwin,
    order: dict[str, Any],
    play: Callable[..., Any],
    jobs: HostJobs,
    answers: dict[str, Any],
    flavor_without_host: str,
) -> None:
    denied = jobs.run_workflow("Order a vPOD", answers, approved=False)
    assert (list(denied.jobs), denied.status) == ([], "failed")

    mistyped = jobs.run_workflow("Order a vPOD", {**answers, "vpod_flavor": "none-such"})
    assert statuses(mistyped) == {"create": "failed", "rollback": "failed"}
    assert "vpod_is_new" not in mistyped.jobs["create"].artifacts
    assert "Nothing was deleted, because the order created nothing" in output(mistyped, "rollback")

    other = jobs.run_workflow("Order a vPOD", {**answers, "vpod_tenant_id": "1" * 32})
    assert statuses(other) == {"create": "failed", "rollback": "failed"}
    assert f"the order is for the project with the ID {'1' * 32}" in output(other, "create")
    assert "Nothing was deleted, because the order created nothing" in output(other, "rollback")

    failed = jobs.run_workflow("Order a vPOD", {**answers, "vpod_flavor": flavor_without_host})
    assert statuses(failed) == {"create": "failed", "rollback": "failed"}
    assert failed.status == "failed"
    assert failed.jobs["create"].artifacts["vpod_is_new"] is True
    assert "Its new objects were deleted." in output(failed, "rollback")
    assert (partitions(twin), servers(admin, order), roles(admin, "tenant-a")) == ({}, {}, [])

    created = jobs.run_workflow("Order a vPOD", answers)
    assert statuses(created) == {"create": "successful", "access": "successful"}
    access = created.jobs["access"].artifacts["vpod_access"]
    assert access["partition"]["state"] == "ACTIVE"
    assert f"{order['vpod_name']}-poplar" in access["vms"]
    [webhook] = jobs.sent
    assert isinstance(webhook.body, dict)
    assert (webhook.name, webhook.body["results"]["vpod_access"]) == ("POD results (webhook)", access)

    # A second order of the same name with a mistake keeps the vPOD.
    again = jobs.run_workflow("Order a vPOD", {**answers, "vpod_ipus": "32"})
    assert statuses(again) == {"create": "failed", "rollback": "failed"}
    assert again.jobs["create"].artifacts["vpod_is_new"] is False
    assert "Nothing was deleted" in output(again, "rollback")
    assert partitions(twin) == {order["vpod_name"]: virmgrpc.PS_ACTIVE}
    assert len(servers(admin, order)) == 2

    # An order beyond the quota of the project creates nothing, and keeps the vPOD.
    project = admin.identity.find_project(order["vpod_tenant"], ignore_missing=False)
    before = (admin.identity.get_project(project.id).tags, servers(admin, order).keys())
    admin.compute.update_quota_set(project, instances=1)
    try:
        beyond = jobs.run_workflow("Order a vPOD", {**answers, "vpod_name": f"{order['vpod_name']}2"})
    finally:
        admin.compute.update_quota_set(project, instances=10)
    assert statuses(beyond) == {"create": "failed", "rollback": "failed"}
    assert "the quota of the project is 1 server, and 1 is used." in output(beyond, "create")
    assert "vpod_is_new" not in beyond.jobs["create"].artifacts
    assert "Nothing was deleted, because the order created nothing" in output(beyond, "rollback")
    assert (admin.identity.get_project(project.id).tags, servers(admin, order).keys()) == before
    assert partitions(twin) == {order["vpod_name"]: virmgrpc.PS_ACTIVE}
