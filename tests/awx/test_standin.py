# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in rejects what AWX 24.6.1 rejects, and AWX's own command line works with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.awx.conftest import PROJECT, project
from tests.awx.requests import Requests
from tests.awx.standin.server import Server

REJECTED = Path(__file__).parent / "rejected.yml"
MAIL = {
    "host": "localhost",
    "port": 25,
    "username": "",
    "password": "",
    "use_tls": False,
    "use_ssl": False,
    "sender": "awx@example.com",
    "recipients": ["operations@example.com"],
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Requests, dict[str, int]]]:
    """A stand-in with one object of each kind, by name."""
    folder = tmp_path_factory.mktemp("awx")
    with Server(folder, project(folder)) as server:
        send, key = Requests(server), {}
        key["lab"] = send.made("organizations/", name="Lab")
        key["team"] = send.made("teams/", name="Operators", organization=key["lab"])
        key["inventory"] = send.made("inventories/", name="Lab", organization=key["lab"])
        key["project"] = send.made("projects/", name="Lab", organization=key["lab"], scm_type="git", scm_url=PROJECT)
        update = send("GET", f"projects/{key['project']}/")[1]["summary_fields"]["current_update"]["id"]
        rejected = send("POST", "job_templates/", _template(key, name="Early"))
        assert rejected == (400, {"playbook": ["Playbook not found for project."]})
        assert send("GET", f"project_updates/{update}/")[1]["status"] == "successful"
        key["template"] = send.made("job_templates/", **_template(key))
        survey = {"name": "", "description": "", "spec": [_question(min=1, max=64)]}
        assert send("POST", f"job_templates/{key['template']}/survey_spec/", survey)[0] == 200
        key["workflow"] = send.made("workflow_job_templates/", name="Lab", organization=key["lab"])
        for name in ("first", "second"):
            fields = {"workflow_job_template": key["workflow"], "unified_job_template": key["template"]}
            key[name] = send.made("workflow_job_template_nodes/", identifier=name, **fields)
        machine = send("GET", "credential_types/?name=Machine")[1]["results"][0]["id"]
        key["machine"] = machine
        mail = {"notification_type": "email", "notification_configuration": MAIL}
        key["mail"] = send.made("notification_templates/", name="Mail", organization=key["lab"], **mail)
        key["label"] = send.made("labels/", name="racks", organization=key["lab"])
        key["credential"] = send.made("credentials/", name="Key", organization=key["lab"], credential_type=machine)
        yield send, key


def _template(key: dict[str, int], **fields: Any) -> dict[str, Any]:
    base = {"name": "Apply", "project": key["project"], "inventory": key["inventory"], "playbook": "site.yml"}
    return {**base, "survey_enabled": True, **fields}


def _question(**fields: Any) -> dict[str, Any]:
    return {"question_name": "IPUs", "variable": "ipus", "type": "integer", "required": True, **fields}


@pytest.mark.parametrize("case", yaml.safe_load(REJECTED.read_text()), ids=lambda case: case["request"])
def test_rejected_requests(lab: tuple[Requests, dict[str, int]], case: dict[str, Any]) -> None:
    send, key = lab
    method, _, path = case["request"].partition(" ")
    body = {name: _filled(value, key) for name, value in case["body"].items()} if "body" in case else None
    status, answer = send(method, path.format(**key), body)
    assert (status, _unwrapped(answer)) == (case["status"], case["answer"])


def _filled(value: Any, key: dict[str, int]) -> Any:
    return key[value[1:-1]] if isinstance(value, str) and value.startswith("{") else value


def _unwrapped(body: Any) -> Any:
    """Return a body with lists of one message as this message."""
    return {name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in body.items()}


@pytest.mark.parametrize(
    ("injectors", "problem"),
    [
        ({"env": {"ANSIBLE_CONFIG": "{{ user }}"}}, "ANSIBLE_CONFIG may affect Ansible configuration"),
        ({"env": {"USER_NAME": "{{ usr }}"}}, "USER_NAME uses an undefined field ('usr' is undefined)"),
        ({"env": {"PATH": "{{ user }}"}}, "PATH is not allowed"),
        ({"env": {"A": "{{ tower.filename.key }}"}}, "undefined field"),
        ({"extra_vars": {"a": "{{ user"}}, "Syntax error rendering template for a"),
        ({"files": {}}, "Additional properties are not allowed"),
    ],
)
def test_rejected_injectors(lab: tuple[Requests, dict[str, int]], injectors: Any, problem: str) -> None:
    inputs = {"fields": [{"id": "user", "label": "User"}]}
    body = {"name": "x", "kind": "cloud", "inputs": inputs, "injectors": injectors}
    status, answer = lab[0]("POST", "credential_types/", body)
    assert status == 400
    assert problem in answer["injectors"][0]


@pytest.mark.parametrize(
    ("rrule", "problem"),
    [
        ("RRULE:FREQ=DAILY;INTERVAL=1", "Valid DTSTART required"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=DAILY", "INTERVAL required"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=SECONDLY;INTERVAL=1", "SECONDLY is not supported"),
        ("DTSTART:20260101T000000 RRULE:FREQ=DAILY;INTERVAL=1", "naive datetime"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=OFTEN;INTERVAL=1", "parsing failed"),
        ("DTSTART:20260101T000000Z RRULE:FREQ=DAILY;INTERVAL=1;COUNT=1000", "COUNT > 999"),
    ],
)
def test_rejected_schedules(lab: tuple[Requests, dict[str, int]], rrule: str, problem: str) -> None:
    send, key = lab
    body = {"name": "x", "unified_job_template": key["template"], "rrule": rrule, "extra_data": {"ipus": 1}}
    status, answer = send("POST", "schedules/", body)
    assert status == 400
    assert any(problem in line for line in answer["rrule"])


def test_schedule_needs_the_required_answers(lab: tuple[Requests, dict[str, int]]) -> None:
    send, key = lab
    rrule = "DTSTART:20260101T000000Z RRULE:FREQ=DAILY;INTERVAL=1"
    body = {"name": "x", "unified_job_template": key["template"], "rrule": rrule}
    assert send("POST", "schedules/", body) == (400, {"variables_needed_to_start": ["'ipus' value missing"]})


def test_launch_lists_ignored_variables(lab: tuple[Requests, dict[str, int]]) -> None:
    send, key = lab
    status, answer = send("POST", f"job_templates/{key['template']}/launch/", {"extra_vars": {"ipus": 4, "other": 1}})
    assert (status, answer["ignored_fields"]) == (201, {"extra_vars": {"other": 1}})


def test_links_of_nodes_have_no_cycle(lab: tuple[Requests, dict[str, int]]) -> None:
    send, key = lab
    first, second = (f"workflow_job_template_nodes/{key[name]}/success_nodes/" for name in ("first", "second"))
    assert send("POST", first, {"id": key["second"]})[0] == 204
    assert send("POST", second, {"id": key["first"]}) == (400, {"Error": "Cycle detected."})
    always = first.replace("success", "always")
    assert send("POST", always, {"id": key["second"]}) == (400, {"Error": "Relationship not allowed."})


def test_roles_of_teams(lab: tuple[Requests, dict[str, int]]) -> None:
    send, key = lab
    roles = send("GET", f"organizations/{key['lab']}/")[1]["summary_fields"]["object_roles"]
    status, answer = send("POST", f"roles/{roles['admin_role']['id']}/teams/", {"id": key["team"]})
    assert (status, answer["msg"].split(" role")[0]) == (400, "You cannot assign an Organization participation")
    read = f"roles/{roles['read_role']['id']}/teams/"
    assert send("POST", read, {"id": key["team"]})[0] == 204
    assert [team["name"] for team in send("GET", read)[1]["results"]] == ["Operators"]


def test_lists_have_pages_and_named_urls(lab: tuple[Requests, dict[str, int]]) -> None:
    send, key = lab
    page = send("GET", "credential_types/?page_size=2&order_by=name")[1]
    assert (page["previous"], len(page["results"])) == (None, 2)
    following = send("GET", page["next"].removeprefix("/api/v2/"))[1]
    assert following["results"][0]["name"] > page["results"][1]["name"]
    assert send("GET", "projects/Lab++Lab/")[1]["id"] == key["project"]


def test_users(lab: tuple[Requests, dict[str, int]]) -> None:
    server = lab[0]._server
    wrong = Requests(server, password="wrong")("GET", "organizations/")
    assert wrong[0] == 401
    reader = Requests(server, "reader")
    assert reader("GET", "organizations/")[1]["count"] == 0
    assert reader("POST", "organizations/", {"name": "x"})[0] == 403
