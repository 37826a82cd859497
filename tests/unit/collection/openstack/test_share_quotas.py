# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas of Manila for shares, which are checked before the first write."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests.unit.collection.openstack.test_share_plan import DESIRED, PROJECT, SHARE, cloud, run


@pytest.mark.parametrize(
    ("quota", "actual", "message"),
    [
        (
            {"shares": {"limit": 2, "in_use": 1, "reserved": 1}},
            [],
            "Cannot provide share 'data': it needs 1 more share; the quota of the project is 2, and 2 are used. Raise "
            "it to at least 3 (openstack share quota set p1 --shares 3).",
        ),
        (
            {"gigabytes": {"limit": 9, "in_use": 5, "reserved": 0}},
            [{**SHARE, "status": "available"}],
            "Cannot provide share 'data': it needs 7 GB more; the quota of the project is 9, and 5 are used. Raise it "
            "to at least 12 (openstack share quota set p1 --gigabytes 12).",
        ),
        (
            {"per_share_gigabytes": {"limit": 7, "in_use": 0, "reserved": 0}},
            [{**SHARE, "status": "available"}],
            "Cannot provide share 'data': it needs 8 GB; the quota of the project for one share is 7. Raise it to at "
            "least 8 (openstack share quota set p1 --per-share-gigabytes 8).",
        ),
    ],
)
def test_quotas_of_manila_are_checked_before_the_first_write(
    quota: dict[str, Any], actual: list[dict[str, Any]], message: str
) -> None:
    responses = {"GET /shares/detail": {"shares": actual}, f"GET /quota-sets/{PROJECT}/detail": {"quota_set": quota}}
    fake = cloud("available", "active", **responses)
    for check_mode in (True, False):
        with pytest.raises(UserError) as failure:
            run(fake, check_mode, shares=[{**DESIRED, "size": 8}])
        assert failure.value.message == message
    assert fake.writes == []


def test_only_shares_that_need_more_are_checked() -> None:
    full = {"quota_set": {name: {"limit": 1, "in_use": 1, "reserved": 0} for name in ("shares", "gigabytes")}}
    fake = cloud("available", "active", **{f"GET /quota-sets/{PROJECT}/detail": full})
    assert run(fake)["changed"] is False
    assert not [key for key, _query in fake.reads if "quota" in key]
    unlimited = {"quota_set": {name: {"limit": -1, "in_use": 9} for name in ("shares", "gigabytes")}}
    fake = cloud("available", "active", **{f"GET /quota-sets/{PROJECT}/detail": unlimited})
    fake.responses["GET /shares/detail"] = {"shares": []}
    assert run(fake, True)["shares"]["created"] == ["data"]


def test_several_shares_are_added() -> None:
    quota = {"shares": {"limit": 3, "in_use": 2, "reserved": 0}}
    fake = cloud("available", "active", **{f"GET /quota-sets/{PROJECT}/detail": {"quota_set": quota}})
    fake.responses["GET /shares/detail"] = {"shares": []}
    with pytest.raises(UserError, match="shares 'data' and 'more': they need 2 more shares; the quota of the project"):
        run(fake, True, shares=[DESIRED, {**DESIRED, "name": "more"}])


@pytest.mark.parametrize(
    ("quota", "message"),
    [
        (
            {"shares": {"limit": 2, "in_use": 2, "reserved": 0}},
            "Cannot provide share 'data': it needs 1 more share; the quota of the project for share type 'fast' is 2, "
            "and 2 are used. Raise it to at least 3 (openstack share quota set p1 --share-type fast --shares 3).",
        ),
        (
            {"gigabytes": {"limit": 4, "in_use": 0, "reserved": 0}},
            "Cannot provide share 'data': it needs 5 GB more; the quota of the project for share type 'fast' is 4, and "
            "0 are used. Raise it to at least 5 (openstack share quota set p1 --share-type fast --gigabytes 5).",
        ),
    ],
)
def test_quotas_of_a_share_type_are_checked(quota: dict[str, Any], message: str) -> None:
    unlimited = {name: {"limit": -1, "in_use": 0, "reserved": 0} for name in ("shares", "gigabytes")}
    bodies = [{"quota_set": unlimited}, {"quota_set": quota}]  # of the project, and of the type
    fake = cloud("available", "active", **{f"GET /quota-sets/{PROJECT}/detail": bodies})
    fake.responses["GET /shares/detail"] = {"shares": []}
    with pytest.raises(UserError) as failure:
        run(fake, True, shares=[{**DESIRED, "type": "fast", "size": 5}, {**DESIRED, "name": "other"}])
    assert failure.value.message == message
    queries = [query for key, query in fake.reads if "quota" in key]
    assert queries == [None, {"share_type": "fast"}]


def test_a_larger_share_is_checked_with_the_quotas_of_its_type() -> None:
    bodies = [{"quota_set": {}}, {"quota_set": {"gigabytes": {"limit": 4, "in_use": 1, "reserved": 0}}}]
    fake = cloud("available", "active", **{f"GET /quota-sets/{PROJECT}/detail": bodies})
    with pytest.raises(UserError, match="it needs 4 GB more; the quota of the project for share type 't' is 4, and 1"):
        run(fake, True, shares=[{**DESIRED, "size": 5}])


def test_a_share_of_another_type_is_checked_before_it_is_removed() -> None:
    bodies = [{"quota_set": {"gigabytes": {"limit": 0, "in_use": 1}}}]
    fake = cloud("available", "active", **{f"GET /quota-sets/{PROJECT}/detail": bodies})
    with pytest.raises(
        UserError, match="it needs 1 GB more; the quota of the project for share type 'fast' is 0, and 1"
    ):
        run(fake, shares=[{**DESIRED, "type": "fast"}], recreate=True)
    assert fake.writes == []
