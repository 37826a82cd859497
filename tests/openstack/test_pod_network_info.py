# SPDX-License-Identifier: GPL-3.0-or-later
"""What Neutron holds for a POD, and leaks between tenants, found on a real Neutron."""

from __future__ import annotations

from typing import Any

import pytest
from neutron_pod import AccessLog, Plan, look, run
from openstack.connection import Connection

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


def tenants(plan: Plan, *more: str) -> list[dict[str, Any]]:
    names = [f"{plan.name}-{name}" for name in ("data", "storage", "management", *more)]
    return [{"project": "tenant-a", "cloud": "tenant-a", "networks": names}]


def kinds(result: dict[str, Any], plan: Plan) -> list[tuple[str, str]]:
    """The findings on the POD's networks: others may leave theirs lying about."""
    return [(f["kind"], f["network"]) for f in result["findings"] if f["network"].startswith(plan.name)]


def test_what_there_is_is_what_was_asked_for(plan: Plan, log: AccessLog) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    with log.nothing_written():
        there = look(pod=plan.name)
    for kind in ("networks", "subnets", "ports", "security_groups", "routers"):
        told = {item["name"]: item for item in there[kind]}
        assert set(told) == {item["name"] for item in options["config"][kind]}
        for item in options["config"][kind]:
            for name in set(item) - {"rules", "interfaces"}:
                assert told[item["name"]][name] == item[name], (item["name"], name)
    assert {(s["kind"], s["name"], s["project"]) for s in there["shares"]} == {
        (s["kind"], s["name"], s["project"]) for s in options["config"]["shares"]
    }
    assert there["ok"] is None
    # What is told can be asked for: it changes nothing.
    lists = {kind: [_asked(item) for item in there[kind]] for kind in ("networks", "subnets", "routers")}
    assert not run(pod=plan.name, config=lists)["changed"]


def _asked(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id" and value is not None}


def test_a_tenant_that_sees_what_it_may_is_no_finding(plan: Plan) -> None:
    assert not run(**plan.options()).get("failed")
    result = look(tenants=tenants(plan))
    assert kinds(result, plan) == []
    found = result["tenants"][0]
    own = [name for name in found["sees"]["networks"] if name.startswith(plan.name)]
    assert own == sorted(f"{plan.name}-{name}" for name in ("data", "management", "storage"))
    assert [name for name in found["reaches"]["networks"] if name.startswith(plan.name)] == own
    reached = {port["name"]: port["addresses"] for port in found["reaches"]["ports"]}
    assert reached["ipum02-rnic"] == ["10.1.5.2"]
    assert "ipum02-bmc" not in reached
    assert f"{plan.name}-poplar-management" in found["sees"]["security_groups"]
    assert f"{plan.name}-controller-bmc" not in found["sees"]["security_groups"]


def test_leaks_are_found(admin: Connection, plan: Plan) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    secret = f"{plan.name}-bmc-gw"
    # By way of a router: the machines' own network is joined to that of the tenant.
    options["config"]["routers"][0]["interfaces"].append({"subnet": f"{plan.name}-bmc", "address": "10.1.1.253"})
    assert not run(**options).get("failed")
    result = look(tenants=tenants(plan))
    assert kinds(result, plan) == [("reaches", secret)]
    assert (
        f"gets to network '{secret}' by way of router '{plan.name}': remove that interface."
        in (result["findings"][-1]["reason"])
    )
    assert "ipum01-bmc" in {port["name"] for port in result["tenants"][0]["reaches"]["ports"]}
    # By a share, which it then also sees; and something that is lacking.
    options["config"]["shares"] = [{"kind": "network", "name": secret, "project": "tenant-a"}]
    assert not run(prune=True, **options).get("failed")
    result = look(tenants=tenants(plan), fail_on_findings=True)
    assert result["failed"]
    assert kinds(result, plan) == [
        ("attaches", secret),
        ("sees", secret),
        ("lacks", f"{plan.name}-storage"),
    ]
    assert "may make ports on network" in result["msg"]
    # Without its credentials, what it is shown is not known.
    (asked,) = tenants(plan)
    del asked["cloud"]
    result = look(tenants=[asked])
    assert ("sees", secret) not in kinds(result, plan)
    assert ("attaches", secret) in kinds(result, plan)


def test_credentials_of_somebody_else_are_refused(cloud: object) -> None:
    result = look(tenants=[{"project": "tenant-a", "cloud": "tenant-b", "networks": []}])
    assert result["failed"]
    assert "are those of another project" in result["msg"]
    result = look(tenants=[{"project": "nobody", "networks": []}])
    assert result["msg"].startswith("There is no project 'nobody'")
