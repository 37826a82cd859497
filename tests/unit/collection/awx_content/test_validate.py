# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistakes in a description of AWX, and connection options."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.client import resolve
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.kinds import KINDS
from ansible_collections.openipu.pod.plugins.plugin_utils.awx.validate import Entry, mistakes

ORGANIZATION = {"controller_organizations": [{"name": "Lab"}]}


def found(existing: dict[str, list[str]] | None = None, **objects: list[dict[str, Any]]) -> list[str]:
    entries = [
        Entry(KINDS[variable], values, f"{variable}[{index}]")
        for variable, items in objects.items()
        for index, values in enumerate(items, 1)
    ]
    return mistakes(entries, existing or {})


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"identifier": name, "unified_job_template": {"name": "Wait", "type": "workflow_approval"}, **more}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ({"controller_organizations": [{"name": "A", "nme": "b"}]}, "unknown option 'nme'. Did you mean 'name'?"),
        ({"controller_organizations": [{"description": "A"}]}, "option 'name' is missing"),
        ({"controller_organizations": [{"name": "A"}, {"name": "A"}]}, "described twice, first at"),
        ({"controller_organizations": [{"name": "A", "state": "exists"}]}, "must be present or absent"),
        ({"controller_teams": [{"name": "A", "organization": "B"}]}, "organization names 'B', but"),
        ({"controller_workflows": [{"name": "A", "workflow_nodes": "x"}]}, "not a list of dictionaries"),
        ({"controller_workflows": [{"name": "A", "workflow_nodes": [node("")]}]}, "node 1 has no identifier"),
        (
            {"controller_workflows": [{"name": "A", "workflow_nodes": [node("a"), node("a")]}]},
            "node 'a' is described twice",
        ),
        (
            {"controller_workflows": [{"name": "A", "workflow_nodes": [{"identifier": "a"}]}]},
            "unified_job_template needs name and type",
        ),
        (
            {
                "controller_workflows": [
                    {"name": "A", "workflow_nodes": [node("a", related={"always_nodes": [{"identifier": "z"}]})]}
                ]
            },
            "always_nodes names the node 'z', which does not exist",
        ),
        (
            {"controller_schedules": [{"name": "A", "rrule": "x", "unified_job_template": "B"}]},
            "unified_job_template names 'B', but no template of that name",
        ),
    ],
)
def test_each_mistake_is_named_once(objects: dict[str, list[dict[str, Any]]], expected: str) -> None:
    (line,) = found(**objects)
    assert expected in line
    assert line.startswith(tuple(objects))


def test_known_names() -> None:
    team = {"controller_teams": [{"name": "A", "organization": "Lab"}]}
    assert found(**ORGANIZATION, **team) == []
    assert found({"controller_organizations": ["Lab"]}, **team) == []
    credential = {"name": "A", "organization": "Lab", "credential_type": "Machine"}
    assert found(**ORGANIZATION, controller_credentials=[credential]) == []


def test_removed_objects_are_unknown_and_need_only_a_name() -> None:
    gone = {"controller_organizations": [{"name": "Lab", "state": "absent"}]}
    (line,) = found(**gone, controller_teams=[{"name": "A", "organization": "Lab"}])
    assert "organization names 'Lab'" in line
    assert found(controller_teams=[{"name": "A", "organization": "Lab", "state": "absent"}]) == []


TOKEN = {"controller_host": "awx.example.com", "controller_oauthtoken": "t"}


def test_connection_options() -> None:
    environment = {"CONTROLLER_HOST": "http://other", "TOWER_USERNAME": "u", "CONTROLLER_VERIFY_SSL": "false"}
    assert resolve(TOKEN, environment) == {
        "controller_host": "https://awx.example.com",
        "controller_oauthtoken": "t",
        "controller_username": "u",
        "validate_certs": "false",
        "request_timeout": 30,
    }
    assert resolve(TOKEN, {})["validate_certs"] is True


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "no address is set"),
        ({"controller_host": "a"}, "neither a token nor user name and password are set"),
        ({"controller_host": "a", "controller_username": "u"}, "neither a token nor user name and password are set"),
        ({"host": "a"}, "unknown connection option 'host'"),
    ],
)
def test_incomplete_connections(options: dict[str, str], expected: str) -> None:
    with pytest.raises(TaskError, match=expected):
        resolve(options, {})
