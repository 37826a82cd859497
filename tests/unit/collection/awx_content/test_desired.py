# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for objects that exist: what is sent, and what AWX keeps."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.plugin_utils.awx import desired as awx_desired
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.desired import ENCRYPTED

MESSAGES = {"started": None, "success": None, "error": {"message": "a", "body": "b"}, "workflow_approval": None}


@pytest.mark.parametrize(
    ("inputs", "stored", "sent"),
    [
        ({"user": "a"}, {"user": "a", "key": ENCRYPTED}, None),
        ({"user": "a", "key": "k"}, {"user": "a", "key": ENCRYPTED}, None),
        ({"user": "b", "key": "k"}, {"user": "a", "key": ENCRYPTED}, {"user": "b", "key": ENCRYPTED}),
        ({"user": "a", "key": "k"}, {"user": "a"}, {"user": "a", "key": "k"}),
        ({}, {}, None),
    ],
)
def test_inputs_of_credentials(inputs: dict[str, str], stored: dict[str, str], sent: dict[str, str] | None) -> None:
    options = awx_desired.credential({"name": "x", "inputs": inputs}, {"inputs": stored}, update_secrets=False)
    assert options.get("inputs") == sent
    assert options["update_secrets"] is False


@pytest.mark.parametrize(("entry", "role", "update"), [(True, True, True), (False, True, False), (True, False, False)])
def test_update_of_secrets_needs_entry_and_role(entry: bool, role: bool, update: bool) -> None:
    desired = {"inputs": {"key": "k"}, "update_secrets": entry}
    options = awx_desired.credential(desired, {"inputs": {"key": ENCRYPTED}}, update_secrets=role)
    assert (options.get("inputs"), options["update_secrets"]) == ({"key": "k"} if update else None, update)


def test_types_of_fields_are_added() -> None:
    desired = {"inputs": {"fields": [{"id": "a", "label": "A"}, {"id": "b", "label": "B", "type": "boolean"}]}}
    assert [field["type"] for field in awx_desired.credential_type(desired)["inputs"]["fields"]] == [
        "string",
        "boolean",
    ]
    assert awx_desired.credential_type({"name": "x"}) == {"name": "x"}


@pytest.mark.parametrize(
    ("messages", "sent"),
    [
        ({"error": {"message": "a"}}, None),
        ({"error": {"message": "c"}}, {**MESSAGES, "error": {"message": "c", "body": "b"}}),
        ({"success": {"body": "s"}}, {**MESSAGES, "success": {"body": "s"}}),
    ],
)
def test_messages_of_notifications(messages: dict[str, Any], sent: dict[str, Any] | None) -> None:
    actual = {"notification_configuration": {"url": "u"}, "messages": MESSAGES}
    options = awx_desired.notification({"name": "x", "messages": messages}, actual, update_secrets=False)
    assert options.get("messages") == sent


def test_options_of_notifications() -> None:
    actual = {"notification_configuration": {"host": "a", "timeout": 30, "password": ENCRYPTED}}
    desired = {"notification_configuration": {"host": "a", "password": "p"}}
    assert "notification_configuration" not in awx_desired.notification(desired, actual, update_secrets=False)
    sent = awx_desired.notification(desired, actual, update_secrets=True)["notification_configuration"]
    assert sent == {"host": "a", "timeout": 30, "password": "p"}
    desired["notification_configuration"]["host"] = "b"
    sent = awx_desired.notification(desired, actual, update_secrets=False)["notification_configuration"]
    assert sent == {"host": "b", "timeout": 30, "password": ENCRYPTED}
    assert awx_desired.notification(desired, None, update_secrets=False) is desired


def test_surveys_as_awx_stores_them() -> None:
    questions = [
        {"type": "multiplechoice", "variable": "a", "choices": "x\n\ny\n", "default": "x\n"},
        {"type": "password", "variable": "b", "default": "secret"},
        {"type": "password", "variable": "c", "default": "secret"},
    ]
    stored = {"spec": [{"variable": "b", "type": "password", "default": ENCRYPTED}]}
    spec = awx_desired.survey({"spec": questions}, stored, update_secrets=False)["spec"]
    assert (spec[0]["choices"], spec[0]["default"]) == ("x\ny", "x")
    assert [question["default"] for question in spec[1:]] == [ENCRYPTED, "secret"]
    assert awx_desired.survey({"spec": questions}, stored, update_secrets=True)["spec"][1]["default"] == "secret"
    assert questions[1]["default"] == "secret"


def test_answers_of_schedules() -> None:
    actual = {"extra_data": {"size": 1, "token": ENCRYPTED}}
    equal = {"extra_data": {"size": 1, "token": "t"}}
    assert "extra_data" not in awx_desired.extra_data(equal, actual, update_secrets=False)
    other = {"extra_data": {"size": 2, "token": "t"}}
    assert awx_desired.extra_data(other, actual, update_secrets=False)["extra_data"]["token"] == ENCRYPTED
    assert awx_desired.extra_data(equal, actual, update_secrets=True) == equal


def _nodes() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return equal nodes: as the description has them, and as the API returns them."""
    desired = [
        {
            "identifier": "a",
            "unified_job_template": {"name": "Apply", "type": "job_template"},
            "extra_data": {"token": "t"},
            "inventory": {"name": "Lab"},
            "related": {"success_nodes": [{"identifier": "b"}], "credentials": [{"name": "Key"}]},
        },
        {"identifier": "b", "unified_job_template": {"name": "Wait", "type": "workflow_approval", "timeout": 60}},
    ]
    actual: list[dict[str, Any]] = [
        {
            "id": 1,
            "identifier": "a",
            "extra_data": {"token": ENCRYPTED},
            "limit": None,
            "success_nodes": [2],
            "summary_fields": {
                "unified_job_template": {"name": "Apply", "unified_job_type": "job"},
                "inventory": {"name": "Lab"},
            },
            "lists": {"credentials": ["Key"]},
        },
        {
            "id": 2,
            "identifier": "b",
            "extra_data": {},
            "summary_fields": {
                "unified_job_template": {"name": "Wait", "unified_job_type": "workflow_approval", "timeout": 60}
            },
        },
    ]
    return desired, actual


def test_equal_nodes() -> None:
    assert not awx_desired.nodes_differ(*_nodes(), update_secrets=False)
    assert awx_desired.nodes_differ(*_nodes(), update_secrets=True)


@pytest.mark.parametrize(
    ("index", "path", "value"),
    [
        (0, ("identifier",), "c"),
        (0, ("limit",), "rack1"),
        (0, ("extra_data", "size"), 3),
        (0, ("success_nodes",), []),
        (0, ("failure_nodes",), [2]),
        (0, ("lists", "credentials"), ["Other"]),
        (0, ("summary_fields", "inventory", "name"), "Other"),
        (0, ("summary_fields", "unified_job_template", "name"), "Other"),
        (0, ("summary_fields", "unified_job_template", "unified_job_type"), "workflow_job"),
        (1, ("summary_fields", "unified_job_template", "timeout"), 61),
        (1, ("summary_fields", "unified_job_template", "description"), "Other"),
        (1, ("all_parents_must_converge",), True),
    ],
)
def test_different_nodes(index: int, path: tuple[str, ...], value: Any) -> None:
    desired, actual = _nodes()
    target = actual[index]
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value
    assert awx_desired.nodes_differ(desired, actual, update_secrets=False)


def test_missing_and_additional_nodes() -> None:
    desired, actual = _nodes()
    assert awx_desired.nodes_differ(desired[:1], actual, update_secrets=False)
    assert awx_desired.nodes_differ(desired, actual[:1], update_secrets=False)
