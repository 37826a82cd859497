# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the AWX content: no check has a finding, and each check finds the defect of a broken copy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jinja2.nativetypes import NativeEnvironment

from tests.unit.collection.awx import check_credentials, check_notifications, check_variables, checks
from tests.unit.collection.awx.broken_copies import BROKEN, question
from tests.unit.collection.awx.checks import Check
from tests.unit.collection.awx.content import Content, load, named

# Templates of Ansible have escapes such as '\\s', which Jinja passes on.
pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")
CHECKS: list[Check] = [
    checks.options_of_modules,
    checks.references,
    checks.playbooks,
    checks.slices,
    checks.unattended_tenants,
    checks.workflow_nodes,
    checks.handled_failures,
    check_credentials.injectors,
    check_credentials.secrets,
    check_credentials.use,
    check_variables.supplied,
    check_variables.used,
    check_variables.surveys,
    check_variables.options,
    check_variables.pod_limits,
    check_variables.prompts,
    check_variables.schedules,
    check_notifications.notifications,
]
PLAYBOOKS_WITHOUT_TEMPLATE = {
    "deployed_clients.yml": "part of site.yml",
    "preflight_controller.yml": "part of preflight.yml and site.yml",
    "openipu_wheelhouse.yml": "needs a package index and a folder on the control node",
    "rack_report.yml": "writes to the control node; rack_report_publish.yml copies the report",
    "users.yml": "writes keys to the control node; user_create.yml copies them",
    "awx.yml": "configures AWX",
    "event_notify.yml": "started by a rule",
    "event_reset.yml": "started by a rule",
    "event_ticket.yml": "started by a rule",
}


@pytest.fixture(scope="module")
def content() -> Content:
    return load()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_the_content_is_correct(content: Content, check: Check) -> None:
    assert list(check(content)) == []


def test_each_playbook_has_a_template(content: Content) -> None:
    used = {template["playbook"].removeprefix("playbooks/") for template in content.templates}
    existing = {path.name for path in (checks.ROOT / "playbooks").glob("*.yml")}
    assert existing - used - set(PLAYBOOKS_WITHOUT_TEMPLATE) == set()
    assert not used & set(PLAYBOOKS_WITHOUT_TEMPLATE)


def test_settings_are_rendered(content: Content) -> None:
    other = load(awx_organization="ours", awx_partition_sizes=["1", "2"])
    assert other.organizations[0]["name"] == "ours"
    assert question(other, "Create a partition", "partition_size")["choices"] == ["1", "2"]
    assert "{{" in content.credential_types[0]["injectors"]["env"]["VIPU_CLI_CA_PATH"]


def test_the_choices_of_an_order_end_at_the_quota_of_the_team() -> None:
    small = load(pod_teams={"research": {"ipus": 12}}, awx_tenant_quota="research")
    assert question(small, "Order IPUs", "order_ipus")["choices"] == ["1", "2", "4", "8"]
    assert question(load(), "Order IPUs", "order_ipus")["choices"][-1] == "64"


def test_the_choices_of_sizes_end_at_the_largest_cluster() -> None:
    clusters = [{"id": "cl0", "agents": ["a1", "a2"]}, {"id": "cl1", "agents": ["a3", "a4", "a5", "a6", "a7"]}]
    clusters.append({"id": "cl2"})  # its agents are not managed
    pod = load(vipu_pod_clusters=clusters)
    assert question(pod, "Create an allocation", "allocation_size")["choices"] == ["1", "2", "3", "4", "5"]
    for template, variable in (("Create a partition", "partition_size"), ("Create a vPOD", "vpod_ipus")):
        assert question(pod, template, variable)["choices"] == ["1", "2", "4", "8", "16"]
    without_inventory = load()
    assert question(without_inventory, "Create an allocation", "allocation_size")["choices"][-1] == "16"
    assert question(without_inventory, "Create a partition", "partition_size")["choices"][-1] == "64"


def test_tenants_order_shares_and_operators_delete_them(content: Content) -> None:
    workflows, templates = named(content.workflows), named(content.templates)
    order = check_variables.questions(workflows["Order a vPOD"])
    create = check_variables.questions(templates["Create a vPOD"])
    assert set(create) - set(order) == {"vpod_controller_address"}
    assert (order["vpod_share_size"]["min"], order["vpod_share_size"]["default"]) == (0, 0)
    assert order["vpod_share_size"]["max"] == content.settings["awx_vpod_largest_share"]
    assert question(content, "Destroy a vPOD", "vpod_share_delete")["default"] == "false"
    [tenants] = [role for role in content.roles if role["teams"] == [content.settings["awx_team_tenants"]]]
    assert "Destroy a vPOD" not in tenants["job_templates"]


@pytest.mark.parametrize(
    ("inventory", "created"),
    [
        ({}, False),
        ({"vpod_controller_public_keys": []}, False),
        ({"vpod_controller_public_keys": ["ssh-ed25519 AAAA operator"]}, True),
        ({"vpod_controller_cloud_init": {"packages": ["vipu-server"]}}, True),
    ],
)
def test_new_vpods_have_a_controller_vm_when_the_inventory_has_its_login(
    content: Content, inventory: dict[str, Any], created: bool
) -> None:
    """The job renders the expression with the variables of its host."""
    expression = named(content.templates)["Create a vPOD"]["extra_vars"]["vpod_controller_vm"]
    assert NativeEnvironment().from_string(expression).render(inventory) is created
    fixed = named(load(awx_vpod_controller_vm=False).templates)["Create a vPOD"]
    assert fixed["extra_vars"]["vpod_controller_vm"] is False


def test_keys_that_are_set_twice_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "teams.yml").write_text("awx_team: &team {name: a}\ncontroller_teams: [{<<: *team, name: b}]")
    with pytest.raises(ValueError, match="'name' is set twice"):
        load(tmp_path)


def test_each_check_has_a_broken_copy() -> None:
    assert {check for check, _change, _finding in BROKEN} == set(CHECKS)


@pytest.mark.parametrize(
    ("check", "change", "finding"), BROKEN, ids=[f"{check.__name__}-{text}" for check, _change, text in BROKEN]
)
def test_a_broken_copy_has_a_finding(
    content: Content, check: Check, change: Callable[[Content], Any], finding: str
) -> None:
    broken = Content(copy.deepcopy(content.kinds), content.settings)
    change(broken)
    findings = list(check(broken))
    assert any(finding in each for each in findings), findings
