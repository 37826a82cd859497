# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of orders: choices, names, quotas, and the orders of one project."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openipu.dashboard.orders import (
    IPUS,
    Flavor,
    OrderError,
    Survey,
    Usage,
    name_error,
    occupied,
    of_project,
    ports,
    quota_errors,
    survey,
    unfinished,
    verify_release,
)
from tests.unit.collection.awx.content import load, named

USAGES = {
    "instances": Usage(2, 1),
    "cores": Usage(8, 4),
    "ram": Usage(None, 100_000),
    "port": Usage(3, 1),
}


def test_choices_are_those_of_the_workflow() -> None:
    workflow = named(load().workflows)["Order a vPOD"]
    found = survey(workflow["survey_spec"])
    assert found == Survey(("1", "2", "4", "8", "16", "32", "64"), ("poplar",), ("vpod.poplar",))


def test_awx_may_return_choices_as_lines() -> None:
    spec = [
        {"variable": name, "choices": choices}
        for name, choices in (("vpod_ipus", "4\n8"), ("vpod_image", ["poplar"]), ("vpod_flavor", "small"))
    ]
    with pytest.raises(OrderError) as raised:
        survey({"spec": spec})
    assert "does not ask for vpod_tenant_id" in raised.value.message
    spec.append({"variable": "vpod_tenant_id"})
    assert survey({"spec": spec}) == Survey(("4", "8"), ("poplar",), ("small",))
    with pytest.raises(OrderError) as raised:
        survey({"spec": spec[:2]})
    assert "no choices for vpod_flavor" in raised.value.message


@pytest.mark.parametrize("name", ["", "-a", "a b", "a/b", "ä", "x" * 64, "a\n", "{{ lookup('file', '/etc/passwd') }}"])
def test_invalid_names(name: str) -> None:
    assert "it must have 1 to 63 letters" in str(name_error(name, []))


def test_names_are_used_once() -> None:
    assert name_error("research1", ["research"]) is None
    assert "this project has one of this name" in str(name_error("research1", ["research1"]))


@pytest.mark.parametrize(
    ("flavor", "changes", "messages"),
    [
        (Flavor(4, 10), {}, []),
        (Flavor(5, 10), {}, ["it needs 5 vCPUs more (quota 8, used 4)"]),
        (Flavor(1, 10), {"instances": Usage(1, 1)}, ["it needs 1 VM more (quota 1, used 1)"]),
        (Flavor(1, 10), {"port": Usage(2, 1)}, ["it needs 2 ports more (quota 2, used 1)"]),
        (Flavor(1, 10), {"ram": Usage(9, 0)}, ["it needs 10 MB of memory more (quota 9, used 0)"]),
        (Flavor(9, 10), {"instances": Usage(0, 0)}, ["1 VM more", "9 vCPUs more"]),
    ],
)
def test_quotas(flavor: Flavor, changes: dict[str, Usage], messages: list[str]) -> None:
    found = quota_errors([flavor], USAGES | changes, 2, 0)
    assert len(found) == len(messages)
    assert all(message in text for message, text in zip(messages, found, strict=True))


def test_pending_orders_count() -> None:
    found = quota_errors([Flavor(2, 1), Flavor(3, 1)], USAGES, 2, 0)
    assert found == [
        "it needs 2 VMs more with 1 pending (quota 2, used 1)",
        "it needs 5 vCPUs more with 1 pending (quota 8, used 4)",
        "it needs 4 ports more with 1 pending (quota 3, used 1)",
    ]


def test_quotas_of_missing_services_are_not_compared() -> None:
    assert quota_errors([Flavor(100, 100)], {}, 3, 1000) == []


@pytest.mark.parametrize(
    ("tenant", "errors"),
    [({}, []), ({"storage": {"network": "pod-storage"}}, ["it needs 3 ports more (quota 3, used 1)"])],
)
def test_a_storage_network_needs_one_more_port(tenant: dict[str, Any], errors: list[str]) -> None:
    assert quota_errors([Flavor(1, 1)], USAGES, ports(tenant), 0) == errors


@pytest.mark.parametrize(("needed", "errors"), [(8, []), (12, ["it needs 12 IPUs more (quota 16, used 8)"]), (0, [])])
def test_the_quota_of_the_team(needed: int, errors: list[str]) -> None:
    assert quota_errors([Flavor(1, 1)], {IPUS: Usage(16, 8)}, 2, needed) == errors


def test_vpods_occupy_whole_machines() -> None:
    sizes = ("1", "2", "4", "8", 16, "", "many", "-4")
    assert [occupied(size) for size in sizes] == [4, 4, 4, 8, 16, 0, 0, 0]


def job(id: int, variables: Any, status: str = "running") -> tuple[str, dict[str, Any]]:
    return "Order", {"id": id, "extra_vars": variables, "status": status, "created": "2026-11-28T00:00:00.5Z"}


def test_a_project_sees_its_own_orders_only() -> None:
    """Another project may have the same name, in another domain or after the project was removed."""
    mine = json.dumps({"vpod_name": "red", "vpod_tenant": "research", "vpod_tenant_id": "a1", "vpod_ipus": "16"})
    theirs = json.dumps({"vpod_name": "a1", "vpod_tenant": "research", "vpod_tenant_id": "a2"})
    of_none = json.dumps({"vpod_name": "green", "vpod_tenant": "research"})
    found = of_project([job(1, mine, "failed"), job(2, theirs), job(3, mine), job(4, of_none)], "a1")
    assert [(order.id, order.vpod, order.ipus, order.status, order.ended) for order in found] == [
        (3, "red", "16", "In progress or waiting for approval", False),
        (1, "red", "16", "Failed", True),
    ]


def test_unfinished_orders_without_an_id_may_be_of_the_project() -> None:
    """Operators launch them in AWX. Orders before the upgrade have no ID either."""

    def variables(name: str, **more: Any) -> str:
        return json.dumps({"vpod_name": name, "vpod_tenant": "research", **more})

    found = unfinished(
        [
            job(1, variables("mine", vpod_tenant_id="a1")),
            job(2, variables("done", vpod_tenant_id="a1"), "failed"),
            job(3, variables("none"), "pending"),
            job(4, variables("empty", vpod_tenant_id="")),
            job(5, variables("ended"), "successful"),
            job(6, variables("theirs", vpod_tenant_id="a2")),
            job(7, variables("other", vpod_tenant="other")),
            job(8, variables("moved", vpod_tenant="other", vpod_tenant_id="a1")),
            job(9, {"vpod_name": "unowned"}),
        ],
        "a1",
        "research",
    )
    assert [order.vpod for order in found] == ["moved", "empty", "none", "mine"]


def test_a_release_is_launched_with_the_id() -> None:
    verify_release({"spec": [{"variable": "vpod_name"}, {"variable": "vpod_tenant_id"}]})
    for spec in ({}, {"spec": [{"variable": "vpod_name"}]}):
        with pytest.raises(OrderError) as raised:
            verify_release(spec)
        assert raised.value.message == (
            "Cannot release a vPOD: the survey of AWX does not ask for vpod_tenant_id. Run the playbook awx.yml again."
        )


@pytest.mark.parametrize("variables", [None, "", "{", "[]", "1", {"vpod_tenant_id": None}, []])
def test_jobs_without_a_project_are_of_nobody(variables: Any) -> None:
    assert of_project([job(1, variables)], "a1") == of_project([job(1, variables)], "") == []
    assert unfinished([job(1, variables)], "a1", "") == []
