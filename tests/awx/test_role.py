# SPDX-License-Identifier: GPL-3.0-or-later
"""The role awx_content with the modules of awx.awx: all modes, and the special cases of each kind of objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.awx.conftest import Applied
from tests.awx.runs import DESCRIPTION, Run, run_playbook
from tests.awx.standin.server import Server

SECRETS = ("key-of-the-lab", "password-of-mail", "token-of-orders")
VARIABLES = {"awx_content_folder": str(DESCRIPTION)}


def run(applied: Applied, folder: Path, *options: str, **variables: Any) -> Run:
    return run_playbook(applied.server, folder, *options, variables={**VARIABLES, **variables})


def test_check_mode_of_an_empty_awx_shows_all_objects_and_writes_none(applied: Applied) -> None:
    assert applied.writes_of_check == 0
    assert applied.check.changes == applied.apply.changes
    assert len(applied.apply.changes) == 18


def test_awx_ignores_no_field_of_the_description(applied: Applied) -> None:
    assert applied.apply.code == 0
    assert applied.server.awx.unknown_fields == []


@pytest.mark.parametrize("mode", [(), ("--check", "--diff")])
def test_next_run_writes_nothing(applied: Applied, tmp_path: Path, mode: tuple[str, ...]) -> None:
    assert run(applied, tmp_path, *mode).changes == []
    assert applied.server.awx.writes == []
    assert applied.server.awx.requests


def test_secrets_that_administrators_entered_stay(applied: Applied, tmp_path: Path) -> None:
    store = applied.server.awx.store
    hosts = store.find("credentials", name="Hosts")
    mail = store.find("notification_templates", name="Mail")
    assert hosts
    assert mail
    hosts["inputs"]["ssh_key_data"] = "-----BEGIN KEY-----"
    mail["notification_configuration"]["password"] = "entered by hand"
    hosts["inputs"]["become_method"] = "su"
    mail["notification_configuration"]["port"] = 25
    assert run(applied, tmp_path).changes == ["updated credential 'Hosts'", "updated notification template 'Mail'"]
    assert hosts["inputs"] == {"become_method": "sudo", "ssh_key_data": "-----BEGIN KEY-----"}
    assert mail["notification_configuration"]["password"] == "entered by hand"
    assert mail["notification_configuration"]["port"] == 587


def test_update_secrets_writes_the_secrets_of_the_description(applied: Applied, tmp_path: Path) -> None:
    secrets = {"lab_key": "next-key", "mail_password": "next-password", "order_token": "next-token"}
    assert run(applied, tmp_path, awx_content_update_secrets=True, **secrets).code == 0
    store = applied.server.awx.store
    controller = store.find("credentials", name="Controller of the lab")
    mail = store.find("notification_templates", name="Mail")
    order = store.find("job_templates", name="Order")
    schedule = store.find("schedules", name="Every night")
    assert controller
    assert mail
    assert order
    assert schedule
    assert controller["inputs"]["access_key"] == "next-key"
    assert mail["notification_configuration"]["password"] == "next-password"
    assert order["_survey"]["spec"][2]["default"] == "next-token"
    assert schedule["extra_data"]["token"] == "next-token"


def _disturb(server: Server) -> list[str]:
    """Change objects as users of AWX do, and return the changes that the role has to make."""
    store = server.awx.store
    template = store.find("job_templates", name="Apply")
    order = store.find("job_templates", name="Order")
    nodes = list(store.all("workflow_job_template_nodes"))
    approval = next(node for node in nodes if node["identifier"] == "approval")
    role = store.find("teams", name="Operators")
    schedule = store.find("schedules", name="Every night")
    mail = store.find("notification_templates", name="Mail")
    assert template
    assert order
    assert role
    assert schedule
    assert mail
    template["limit"] = "rack9"
    template["_lists"]["labels"].clear()
    order["_survey"]["spec"][0]["max"] = 6400
    approval["_lists"]["always_nodes"].clear()
    store.roles[order["_roles"]["execute_role"]]["teams"].clear()
    schedule["extra_data"]["ipus"] = 1
    mail["messages"]["error"]["message"] = "changed"
    return [
        "updated notification template 'Mail'",
        "updated job template 'Order'",
        "updated workflow template 'Bring-up'",
        "updated schedule 'Every night'",
        "created role 'execute' of Operators on Apply, Order, Bring-up",
    ]


def test_changes_of_others_are_shown_and_reverted(applied: Applied, tmp_path: Path) -> None:
    expected = _disturb(applied.server)
    # The entry sets no limit, so the limit stays. Omitted options are not managed.
    expected.insert(1, "updated job template 'Apply'")
    assert run(applied, tmp_path, "--check").changes == expected
    assert applied.server.awx.writes == []
    assert run(applied, tmp_path).changes == expected
    store = applied.server.awx.store
    nodes = {node["identifier"]: node for node in store.all("workflow_job_template_nodes")}
    assert sorted(nodes) == ["again", "apply", "approval", "order"]
    assert nodes["approval"]["_lists"]["always_nodes"] == [nodes["order"]["id"]]
    assert nodes["apply"]["_lists"]["success_nodes"] == [nodes["approval"]["id"]]
    template = store.find("job_templates", name="Apply")
    assert template
    assert template["limit"] == "rack9"
    assert len(list(store.all("workflow_approval_templates"))) == 1
    applied.server.awx.requests.clear()
    assert run(applied, tmp_path).changes == []
    assert applied.server.awx.writes == []


def test_templates_for_awx_arrive_unrendered(applied: Applied) -> None:
    kind = applied.server.awx.store.find("credential_types", name="Controller")
    template = applied.server.awx.store.find("job_templates", name="Apply")
    assert kind
    assert template
    assert kind["injectors"]["env"]["LAB_USER"] == "{{ user }}"
    assert template["extra_vars"] == '{"lab_text": "{{ left_alone }}"}'


def test_rejected_object_is_named_without_secrets(start: Callable[[], Server], tmp_path: Path) -> None:
    server = start()
    variables = {
        **VARIABLES,
        "controller_credentials": [
            {
                "name": "Controller of the lab",
                "organization": "Lab",
                "credential_type": "Controller",
                "inputs": {"user": "lab", "access_key": "key-of-the-lab", "pin": "key-of-the-lab"},
            }
        ],
    }
    rejected = run_playbook(server, tmp_path, "-vvvv", "--diff", variables=variables)
    assert rejected.message.startswith(
        "Cannot apply credential 'Controller of the lab' (controller_credentials[1]): Unable to create credential"
    )
    assert "'pin' was unexpected" in rejected.message
    assert rejected.message.endswith("5 objects before it are done; later ones are unchanged.")
    assert rejected.result["error_code"] == "OPU100"
    for secret in SECRETS:
        assert secret not in rejected.output


def test_mistakes_are_listed_together_before_any_request(start: Callable[[], Server], tmp_path: Path) -> None:
    server = start()
    variables = {
        **VARIABLES,
        "controller_templates": [
            {"name": "Broken", "project": "Lb", "playbook": "site.yml", "job_slices": 2},
            {"name": "Apply", "organization": "Lab", "project": "Lab"},
        ],
        "controller_roles": [{"role": "use", "teams": ["Owners"], "projects": ["Lab"]}],
    }
    message = run_playbook(server, tmp_path, variables=variables).message
    assert message.startswith("Cannot apply the description of AWX: it has 4 mistakes. Nothing was changed.")
    for line in (
        "controller_templates[1], job template 'Broken': unknown option 'job_slices'",
        "project names 'Lb', but controller_projects has no entry of that name. Did you mean 'Lab'?",
        "controller_templates[2], job template 'Apply': option 'playbook' is missing",
        "teams names 'Owners', but controller_teams has no entry of that name",
    ):
        assert line in message
    assert server.awx.requests == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"CONTROLLER_PASSWORD": "wrong-password"}, "(HTTP 401|Failed to get token|not valid)"),
        ({"SSL_CERT_FILE": "/dev/null"}, "(certificate|CERTIFICATE)"),
    ],
)
def test_connections_that_fail(
    start: Callable[[], Server], tmp_path: Path, environment: dict[str, str], expected: str
) -> None:
    server = start()
    failed = run_playbook(server, tmp_path, variables=VARIABLES, **environment)
    assert re.search(expected, failed.message), failed.message
    assert "wrong-password" not in failed.output
    assert server.awx.writes == []


def test_connection_from_variables_without_verification(start: Callable[[], Server], tmp_path: Path) -> None:
    server = start()
    (tmp_path / "one").mkdir()
    (tmp_path / "one/organizations.yml").write_text("controller_organizations: [{name: Lab}]\n")
    connection = {
        "controller_host": server.url,
        "controller_username": "admin",
        "controller_password": "stand-in-password",
        "validate_certs": False,
    }
    nothing = dict.fromkeys(("CONTROLLER_HOST", "CONTROLLER_USERNAME", "CONTROLLER_PASSWORD"), "")
    variables = {"awx_content_folder": str(tmp_path / "one"), "awx_content_connection": connection}
    made = run_playbook(server, tmp_path, variables=variables, SSL_CERT_FILE="/dev/null", **nothing)
    assert made.changes == ["created organization 'Lab'"]


def test_user_without_rights(start: Callable[[], Server], tmp_path: Path) -> None:
    refused = run_playbook(start(), tmp_path, variables=VARIABLES, CONTROLLER_USERNAME="reader")
    assert refused.message.startswith(
        "Cannot apply organization 'Lab' (objects.yml, entry 1): You don't have permission"
    )
    assert "Give the user of the role the right to change it" in refused.message
