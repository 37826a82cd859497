# SPDX-License-Identifier: GPL-3.0-or-later
"""Job templates and workflows of ``extensions/awx`` in the execution environment, with a twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.integration.bringup.own_twin import OwnTwin
from tests.unit.collection.awx.content import load, named
from tools.ee.image import Image
from tools.ee.notifications import URL as AWX_JOB

from .desk import ACCOUNT, TEAM, Desk, SecureTwin, make_desk
from .test_host_templates import TEMPLATES as HOST_TEMPLATES

BRING_UP = {
    *("POD preflight", "PDUs and power budget", "Management switches", "Data switches", "Cabling", "Hosts"),
    *("Agents, clusters and allocations", "Cluster tests", "All partitions", "Rack report"),
}
WHOLE_POD = {"POD bring-up", "POD bring-up (check)", "Controller report"}
PARTITIONS = {
    *("Create an allocation", "Create a partition", "Reset a partition", "Remove a partition", "Remove an allocation"),
}
TENANTS = {"Create a user", "Remove a user", "Order IPUs", "Return IPUs"}
OPERATIONS = {"Drift check", "Drift report", "Failure report", "IPU-Machine health", "IPU-Machine upgrade"}
SERVICE = {"Drain an IPU-Machine", "Service of an IPU-Machine"}
OTHER_FILES = {"tests/kubernetes/test_job_template.py": {"Kubernetes operator"}}
# Templates whose playbooks tests/openstack runs without the image.
NOT_RUN = {
    *("OpenStack networks", "Bare-metal nodes"),
    *("Create a vPOD", "Show a vPOD", "Destroy a vPOD", "Roll back a vPOD"),
}

pytestmark = pytest.mark.timeout(1800)  # a workflow has eleven jobs, each in a new container


@pytest.fixture(scope="module")
def secure(twin: OwnTwin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureTwin]:
    made = SecureTwin(twin, tmp_path_factory.mktemp("secure"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def awx(image: Image, project: Path, secure: SecureTwin, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return make_desk(image, project, tmp_path_factory.mktemp("jobs"), secure)


@pytest.fixture
def desk(awx: Desk) -> Desk:
    """Return an AWX whose controller has the agents, clusters and allocations of the POD."""
    if not awx.ready:
        awx.run("Agents, clusters and allocations")
        awx.ready = True
    awx.started.clear()
    awx.sent.clear()
    return awx


def test_every_template_is_run_here_or_in_another_file() -> None:
    groups = (BRING_UP, WHOLE_POD, PARTITIONS, TENANTS, OPERATIONS, SERVICE, HOST_TEMPLATES, NOT_RUN)
    names = [name for group in (*groups, *OTHER_FILES.values()) for name in group]
    assert sorted(names) == sorted(named(load().templates))
    for path, others in OTHER_FILES.items():
        text = (ROOT / path).read_text()
        assert [name for name in others if f'"{name}"' not in text] == [], path


def test_the_workflow_brings_up_a_rack(awx: Desk) -> None:
    awx.started.clear()
    workflow = awx.run_workflow("Rack bring-up")
    failed = {name: job.stdout for name, job in workflow.jobs.items() if job.status != "successful"}
    assert (workflow.status, failed) == ("successful", {})
    assert workflow.approvals == ["approval"]
    assert set(awx.started) == BRING_UP
    for node in ("power", "management_switches", "data_switches", "objects", "partitions"):
        assert workflow.jobs[node].changed > 0, node
    assert workflow.jobs["report"].artifacts["rack_report_file"].endswith(":/tmp/reports/twin.html")


def test_jobs_bring_up_the_whole_pod_and_then_change_nothing(desk: Desk) -> None:
    desk.run("POD bring-up")
    assert desk.run("POD bring-up (check)").changed == 0
    second = desk.run("POD bring-up")
    assert second.changed == 0, second.stdout
    report = desk.run("Controller report")
    assert all(name in report.stdout for name in ("vision", "language", "notebook", "team-a"))
    assert set(desk.started) == WHOLE_POD


def test_jobs_create_reset_and_remove_a_partition(desk: Desk) -> None:
    allocation = {"allocation_id": "guest", "allocation_size": "1"}
    assert desk.run("Create an allocation", job_type="check", **allocation).changed == 1
    created = desk.run("Create an allocation", **allocation)
    assert created.artifacts["allocation_result"]["id"] == "guest"
    partition = {"partition_id": "trial", "partition_allocation": "guest", "partition_size": "4"}
    result = desk.run("Create a partition", **partition).artifacts["partition_result"]
    assert (result["id"], int(result["size"]), result["state"]) == ("trial", 4, "ACTIVE")
    assert desk.run("Create a partition", **partition).changed == 0
    assert desk.run("Reset a partition", partition_id="trial").artifacts["partition_result"]["state"] == "ACTIVE"
    assert desk.run("Remove a partition", partition_id="trial").changed == 1
    assert desk.run("Remove an allocation", allocation_id="guest").changed == 1
    assert desk.run("Remove an allocation", allocation_id="guest").changed == 0
    assert set(desk.started) == PARTITIONS


def test_jobs_create_users_and_orders_of_tenants(desk: Desk) -> None:
    user = {"user_id": "alice", "user_role": "user", "user_allocations": "team-a", "user_key_account": ACCOUNT}
    result = desk.run("Create a user", **user).artifacts["user_result"]
    assert result["allocations"] == ["team-a"]
    assert desk.run("Remove a user", user_id="alice").changed > 0
    order = desk.run("Order IPUs", user="bob", order_name="nlp", order_ipus="4")
    access = order.artifacts["order_access"]
    assert (access["partition"], access["user"], int(access["ipus"])) == (f"{TEAM}.nlp", "bob", 4)
    [webhook] = desk.sent
    assert webhook.body == {"job": 1, "status": "successful", "url": AWX_JOB, "results": order.artifacts}
    assert desk.run("Order IPUs", user="bob", order_name="nlp", order_ipus="4").changed == 0
    assert "Cannot order 16 IPUs" in desk.reject("Order IPUs", user="bob", order_name="more", order_ipus="16")
    assert desk.run("Return IPUs", order_name="nlp").changed == 2
    assert set(desk.started) == TENANTS


def test_the_drift_workflows_report_and_correct_differences(desk: Desk, secure: SecureTwin) -> None:
    desk.run("POD bring-up")
    workflow = desk.run_workflow("Drift")
    assert (workflow.status, list(workflow.jobs)) == ("successful", ["check"]), workflow.jobs["check"].stdout
    assert desk.sent == []
    desk.run("Remove a partition", partition_id="notebook")
    workflow = desk.run_workflow("Drift")
    assert {name: job.status for name, job in workflow.jobs.items()} == {"check": "failed", "report": "successful"}
    assert workflow.status == "successful"
    drift = workflow.jobs["report"].artifacts["pod_drift"]
    assert drift == workflow.jobs["check"].artifacts["pod_drift"]
    assert [each for each in drift if "notebook" in each]
    [mail] = desk.sent
    assert (mail.name, mail.body) == ("POD drift (mail)", "\n".join([*drift, "", AWX_JOB]))
    denied = desk.run_workflow("Correct drift", approved=False)
    assert (denied.status, list(denied.jobs), denied.approvals) == ("failed", ["check"], ["approval"])
    corrected = desk.run_workflow("Correct drift")
    assert {name: job.status for name, job in corrected.jobs.items()} == {"check": "failed", "bring_up": "successful"}
    assert corrected.jobs["bring_up"].changed == 1
    assert list(desk.run_workflow("Correct drift").jobs) == ["check"]


def test_the_failure_report_copies_the_rack_report_and_fails(desk: Desk) -> None:
    output = desk.reject("Failure report")
    assert "Cannot complete the workflow: a job before this one failed" in output
    assert ":/tmp/reports/twin.html" in output


def test_jobs_check_and_upgrade_machines(desk: Desk) -> None:
    health = desk.run("IPU-Machine health", virm_agent_ssh="false", virm_agent_fail_on_findings="false")
    assert "ag01" in health.stdout
    upgrade = desk.run("IPU-Machine upgrade", virm_agent_upgrade_domain="machine", virm_agent_upgrade_partitions="keep")
    assert "pending: []" in upgrade.stdout


def test_jobs_take_machines_out_of_service_and_drain_them(desk: Desk) -> None:
    made = desk.run("Create an allocation", allocation_id="guest", allocation_size="2")
    partition = {"partition_id": "hot", "partition_allocation": "guest", "partition_size": "4"}
    desk.run("Create a partition", **partition, partition_relocatable="true")
    agent = made.artifacts["allocation_result"]["agents"][0]
    desk.started.clear()
    moved = {"machine_name": agent, "machine_force": "true"}
    assert desk.run("Drain an IPU-Machine", job_type="check", **moved).changed > 0
    drained = desk.run("Drain an IPU-Machine", **moved, machine_reason="fan 2 fails")
    assert drained.artifacts["machine_result"] == {"id": agent, "moved": ["hot"], "remaining": []}
    assert desk.run("Drain an IPU-Machine", **moved).changed == 0
    serviced = desk.run("Service of an IPU-Machine", machine_name=agent, machine_in_service="true")
    assert (serviced.changed, serviced.artifacts["machine_result"]["id"]) == (1, agent)
    assert set(desk.started) == SERVICE
    desk.run("Remove a partition", partition_id="hot")
    desk.run("Remove an allocation", allocation_id="guest")
