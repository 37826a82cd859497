# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares and rules that are there, and not ready or never will be."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.openstack import attempts
from ansible_collections.openipu.pod.plugins.module_utils.openstack.shares_task import OPENSTACK_POD_SHARE
from ansible_collections.openipu.pod.plugins.module_utils.runner import Run, TaskError
from answers import Answers

SHARE = {"id": "s1", "name": "data", "share_proto": "NFS", "share_type_name": "t", "size": 1, "description": ""}
ASKED = {"name": "data", "protocol": "NFS", "size": 1, "access": [{"to": "10.1.6.0/24"}]}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_PAUSE", 0)


def rule(state: str, id: str = "r1") -> dict[str, Any]:
    return {"id": id, "access_to": "10.1.6.0/24", "access_type": "ip", "access_level": "rw", "state": state}


def cloud(share: str, state: str, **told: Any) -> Answers:
    return Answers(
        {
            "GET /shares/detail": {"shares": [{**SHARE, "status": share}]},
            "GET /share-access-rules": {"access_list": [rule(state)]},
            "GET /shares/s1/export_locations": {"export_locations": []},
            "GET /messages": {"messages": []},
            **told,
        }
    )


def run(there: Answers, check_mode: bool = False) -> dict[str, Any]:
    checked = ArgumentSpecValidator(OPENSTACK_POD_SHARE.argument_spec).validate({"shares": [ASKED]})
    assert not checked.error_messages
    return OPENSTACK_POD_SHARE.run(Run(checked.validated_parameters, check_mode, False, there))


def test_a_share_and_a_rule_under_way_are_waited_for() -> None:
    there = cloud(
        "creating",
        "queued_to_apply",
        **{
            "GET /shares/s1": [{"share": {**SHARE, "status": status}} for status in ("creating", "available")],
            "GET /share-access-rules/r1": [{"access": rule(state)} for state in ("applying", "active")],
        },
    )
    result = run(there)
    assert (result["changed"], there.written) == (False, [])
    assert len(there.told["GET /shares/s1"]) == len(there.told["GET /share-access-rules/r1"]) == 1  # asked to the end


def test_a_share_that_becomes_none_fails() -> None:
    there = cloud("creating", "active", **{"GET /shares/s1": {"share": {**SHARE, "status": "error"}}})
    with pytest.raises(TaskError) as told:
        run(there)
    assert told.value.sentence == "Cannot use share 'data': it is in state error: it does not say why."
    assert told.value.result["shares"]["unchanged"] == []


def test_a_rule_that_the_backend_did_not_take_is_made_anew() -> None:
    told = {
        "GET /share-access-rules/r2": {"access": rule("active", "r2")},
        "POST /shares/s1/action": {"access": {"id": "r2"}},
    }
    there = cloud("available", "error", **told)
    assert run(there, check_mode=True)["access_rules"]["recreated"] == ["data/ip/10.1.6.0/24"]
    result = run(there)
    assert result["access_rules"]["recreated"] == ["data/ip/10.1.6.0/24"]
    assert [list(body) for place, body in there.written] == [["deny_access"], ["allow_access"]]
