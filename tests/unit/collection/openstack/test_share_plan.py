# SPDX-License-Identifier: GPL-3.0-or-later
"""Existing shares and access rules that are not ready, or failed."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import RejectedError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.share.task import OPENSTACK_POD_SHARE
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from ansible_collections.openipu.pod.plugins.module_utils.runner import Run, TaskError

from tests.unit.collection.openstack.fake_cloud import FakeCloud

PROJECT = "p1"  # of the credentials of the fake cloud
OTHER = "0" * 32
SHARE = {
    "id": "s1",
    "name": "data",
    "project_id": PROJECT,
    "share_proto": "NFS",
    "share_type_name": "t",
    "size": 1,
    "description": "",
}
DESIRED = {"name": "data", "protocol": "NFS", "size": 1, "access": [{"to": "10.1.6.0/24"}]}


def rule(state: str, id: str = "r1") -> dict[str, Any]:
    return {"id": id, "access_to": "10.1.6.0/24", "access_type": "ip", "access_level": "rw", "state": state}


def cloud(share: str, state: str, **responses: Any) -> FakeCloud:
    return FakeCloud(
        {
            "GET /shares/detail": {"shares": [{**SHARE, "status": share}]},
            "GET /share-access-rules": {"access_list": [rule(state)]},
            "GET /shares/s1/export_locations": {"export_locations": []},
            "GET /messages": {"messages": []},
            **responses,
        }
    )


def run(fake: FakeCloud, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    checked = ArgumentSpecValidator(OPENSTACK_POD_SHARE.argument_spec).validate({"shares": [DESIRED], **options})
    assert not checked.error_messages
    return OPENSTACK_POD_SHARE.run(Run(checked.validated_parameters, check_mode, False, fake))


def test_the_task_waits_for_a_share_and_a_rule_under_way() -> None:
    fake = cloud(
        "creating",
        "queued_to_apply",
        **{
            "GET /shares/s1": [{"share": {**SHARE, "status": status}} for status in ("creating", "available")],
            "GET /share-access-rules/r1": [{"access": rule(state)} for state in ("applying", "active")],
        },
    )
    result = run(fake)
    assert (result["changed"], fake.writes) == (False, [])
    polled = [fake.responses[f"GET {path}"] for path in ("/shares/s1", "/share-access-rules/r1")]
    assert [len(responses) for responses in polled] == [1, 1]  # only the last one is left


def test_a_share_that_fails_is_an_error() -> None:
    fake = cloud("creating", "active", **{"GET /shares/s1": {"share": {**SHARE, "status": "error"}}})
    with pytest.raises(TaskError) as failure:
        run(fake)
    assert failure.value.message == "Cannot use share 'data': it is in state error: Manila reports no cause."
    assert failure.value.result["shares"]["unchanged"] == []


EXPORTS = {"export_locations": [{"path": "10.1.6.9:/s1", "preferred": True}]}


REMEDY = "Its data may be intact. Repair it, or set recreate to replace it."


def test_a_failed_share_with_exports_is_recreated_on_request_only() -> None:
    """Manila also sets the state error later, such as when its backend or the promotion of a replica fails."""
    failed = {**SHARE, "status": "error"}
    responses = {"GET /shares/s1": {"share": failed}, "GET /shares/s1/export_locations": EXPORTS}
    fake = cloud("error", "active", **responses)
    assert run(fake, check_mode=True)["shares"]["unchanged"] == ["data"]
    for messages, cause in (
        ([], "Manila reports no cause"),
        ([{"user_message": "the backend is down"}], "the backend is down"),
        ([{"user_message": "The backend is down. "}], "The backend is down"),
    ):
        fake.responses["GET /messages"] = {"messages": messages}
        with pytest.raises(TaskError) as failure:
            run(fake)
        assert failure.value.message == f"Cannot use share 'data': it is in state error: {cause}. {REMEDY}"
    assert fake.writes == []
    assert run(fake, check_mode=True, recreate=True)["shares"]["recreated"] == ["data"]
    fake.responses["GET /shares/s1/export_locations"] = {"export_locations": []}  # never created
    assert run(fake, check_mode=True)["shares"]["recreated"] == ["data"]


class FailedShare(FakeCloud):
    """Cloud with a failed share with exports. Before 2.74, Manila removes no rule of a share in state error."""

    def request(self, service: str, method: str, path: str, **options: Any) -> Any:
        body = super().request(service, method, path, **options)
        if method == "POST" and "deny_access" in options["json"]:
            if options.get("microversion", "2.50") != "2.74":
                raise RejectedError("Manila returned an error: Access rules cannot be denied.", 400)
            self.responses["GET /share-access-rules"] = {"access_list": []}
        return body


def failed_share(newest: tuple[int, int] | None) -> FailedShare:
    failed = {**SHARE, "status": "error"}
    responses = {"GET /shares/s1": {"share": failed}, "GET /shares/s1/export_locations": EXPORTS}
    fake = FailedShare(cloud("error", "active", **responses).responses)
    fake.microversion = newest
    return fake


@pytest.mark.parametrize("newest", [None, (2, 74), (2, 99)])
def test_the_rules_of_a_failed_share_with_exports_are_removed(newest: tuple[int, int] | None) -> None:
    """The removal of a vPOD keeps its share, and revokes the access to it."""
    fake, without_rules = failed_share(newest), {"shares": [{"name": "data", "access": []}]}
    for check_mode in (True, False):
        result = run(fake, check_mode, **without_rules)
        assert result["shares"]["unchanged"] == ["data"]
        assert result["access_rules"]["removed"] == ["data/ip/10.1.6.0/24"]
        assert len(fake.writes) == (0 if check_mode else 1)
    assert fake.writes == [("POST /shares/s1/action", {"deny_access": {"access_id": "r1"}})]
    for check_mode in (True, False):
        assert run(fake, check_mode, **without_rules)["changed"] is False
    assert len(fake.writes) == 1


def test_an_older_manila_keeps_the_rules_of_a_failed_share() -> None:
    fake = failed_share((2, 73))
    with pytest.raises(TaskError) as failure:
        run(fake, shares=[{"name": "data", "access": []}])
    assert failure.value.message == (
        "Cannot remove access rule 'data/ip/10.1.6.0/24': its share is in state error, and Manila removes the rules of "
        "such a share since API version 2.74, but this one has 2.73. Repair the share, or upgrade Manila."
    )
    assert fake.writes == []


@pytest.mark.parametrize(
    "share", [{"name": "data"}, {"name": "data", "access": [], "size": 1}, {**DESIRED, "access": []}]
)
def test_a_task_with_further_settings_needs_an_available_share(share: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match="Cannot use share 'data': it is in state error"):
        run(failed_share((2, 74)), shares=[share])


def test_a_rule_that_the_backend_rejected_is_recreated() -> None:
    responses = {
        "GET /share-access-rules/r2": {"access": rule("active", "r2")},
        "POST /shares/s1/action": {"access": {"id": "r2"}},
    }
    fake = cloud("available", "error", **responses)
    assert run(fake, check_mode=True)["access_rules"]["recreated"] == ["data/ip/10.1.6.0/24"]
    result = run(fake)
    assert result["access_rules"]["recreated"] == ["data/ip/10.1.6.0/24"]
    assert [list(body) for _key, body in fake.writes] == [["deny_access"], ["allow_access"]]


def test_shares_of_another_project_are_only_checked_and_removed() -> None:
    quotas = {f"GET /quota-sets/{OTHER}": {"quota_set": {}}}
    fake = cloud("available", "active", **{"GET /shares/detail": {"shares": []}}, **quotas)
    assert run(fake, True, project=OTHER)["shares"]["created"] == ["data"]
    assert ("GET /shares/detail", {"name": "data", "all_tenants": "1", "project_id": OTHER}) in fake.reads
    with pytest.raises(UserError, match=f"share 'data': the credentials are not for project '{OTHER}'"):
        run(fake, project=OTHER)
    assert fake.writes == []
    fake.responses["GET /projects"] = {"projects": []}
    assert run(fake, project="missing", state="absent")["changed"] is False
    with pytest.raises(TaskError, match="Cannot find project 'missing'"):
        run(fake, project="missing")
    fake.responses["GET /shares/detail"] = {"shares": [{**SHARE, "project_id": OTHER, "status": "available"}]}
    assert run(fake, True, project=OTHER, state="absent")["shares"]["removed"] == ["data"]


def test_an_administrator_removes_the_rules_of_a_share_in_another_project() -> None:
    share = {**SHARE, "project_id": OTHER, "status": "available"}
    responses = {f"GET /quota-sets/{OTHER}": {"quota_set": {}}, "GET /shares/detail": {"shares": [share]}}
    fake = cloud("available", "active", **responses)
    without_rules: dict[str, Any] = {"project": OTHER, "shares": [{"name": "data", "access": []}]}
    result = run(fake, **without_rules)
    assert (result["shares"]["unchanged"], result["access_rules"]["removed"]) == (["data"], ["data/ip/10.1.6.0/24"])
    assert fake.writes == [("POST /shares/s1/action", {"deny_access": {"access_id": "r1"}})]
    # The rules of a failed share, which has no exports, are not planned separately.
    share["status"] = "error"
    predicted = run(fake, True, **without_rules)
    assert (predicted["shares"]["recreated"], predicted["access_rules"]["removed"]) == (["data"], [])


# Manila ignores all_tenants and project_id without rights, and returns the shares of the credentials.
@pytest.mark.parametrize("own", [[], [{**SHARE, "status": "available"}]])
@pytest.mark.parametrize("state", ["present", "absent"])
def test_shares_of_another_project_need_an_administrator(own: list[dict[str, Any]], state: str) -> None:
    rejection = RejectedError("Manila returned an error: Forbidden.", 403)
    responses = {"GET /shares/detail": {"shares": own}, f"GET /quota-sets/{OTHER}": rejection}
    fake = cloud("available", "active", **responses)
    for check_mode in (True, False):
        with pytest.raises(UserError) as failure:
            run(fake, check_mode, project=OTHER, state=state)
        assert failure.value.message == (
            f"Cannot read the shares of project '{OTHER}': the credentials are for another project, and not for an "
            "administrator. Use those of an administrator, or of this project."
        )
    assert fake.writes == []


def test_shares_of_the_wrong_project_are_rejected() -> None:
    """A policy may permit the quotas of other projects, but not their shares."""
    fake = cloud("available", "active", **{f"GET /quota-sets/{OTHER}": {"quota_set": {}}})
    with pytest.raises(UserError, match=f"Cannot read the shares of project '{OTHER}'"):
        run(fake, project=OTHER, state="absent")
    assert fake.writes == []
