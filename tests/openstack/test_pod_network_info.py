# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of a POD, and leaks between tenants, read from a real Neutron."""

from __future__ import annotations

from typing import Any

import pytest
from openstack.connection import Connection

from tests.openstack.neutron_pod import AccessLog, Plan, info, run

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def tenants(plan: Plan, *extra: str) -> list[dict[str, Any]]:
    names = [f"{plan.name}-{name}" for name in ("data", "storage", "control", *extra)]
    return [{"project": "tenant-a", "cloud": "tenant-a", "networks": names}]


def pod_findings(result: dict[str, Any], plan: Plan) -> list[tuple[str, str]]:
    """Return the findings about networks of the POD, since other tests may leave networks behind."""
    return [
        (finding["kind"], finding["network"])
        for finding in result["findings"]
        if finding["network"].startswith(plan.name)
    ]


def test_owned_objects_match_the_options(plan: Plan, log: AccessLog) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    with log.no_writes():
        actual = info(pod=plan.name)
    for kind in ("networks", "subnets", "ports", "security_groups", "routers"):
        items = {item["name"]: item for item in actual[kind]}
        assert set(items) == {item["name"] for item in options["config"][kind]}
        for item in options["config"][kind]:
            for name in set(item) - {"rules", "interfaces"}:
                assert items[item["name"]][name] == item[name], (item["name"], name)
    assert {(s["kind"], s["name"], s["project"]) for s in actual["shares"]} == {
        (s["kind"], s["name"], s["project"]) for s in options["config"]["shares"]
    }
    assert actual["ok"] is None
    # The result is a valid option that changes nothing.
    lists = {kind: [_options(item) for item in actual[kind]] for kind in ("networks", "subnets", "routers")}
    assert not run(pod=plan.name, config=lists)["changed"]


def _options(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "id" and value is not None}


def test_allowed_networks_cause_no_findings(plan: Plan) -> None:
    assert not run(**plan.options()).get("failed")
    result = info(tenants=tenants(plan))
    assert pod_findings(result, plan) == []
    found = result["tenants"][0]
    own = [name for name in found["visible"]["networks"] if name.startswith(plan.name)]
    assert own == sorted(f"{plan.name}-{name}" for name in ("data", "control", "storage"))
    assert [name for name in found["reachable"]["networks"] if name.startswith(plan.name)] == own
    reached = {port["name"]: port["addresses"] for port in found["reachable"]["ports"]}
    assert reached["ipum02-rnic"] == ["10.1.5.2"]
    assert "ipum02-bmc" not in reached
    assert f"{plan.name}-poplar-management" in found["visible"]["security_groups"]
    assert f"{plan.name}-controller-bmc" not in found["visible"]["security_groups"]


def test_leaks_are_reported(admin: Connection, plan: Plan) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    secret = f"{plan.name}-bmc-gw"
    # A router connects the network of the machines to that of the tenant.
    options["config"]["routers"][0]["interfaces"].append({"subnet": f"{plan.name}-bmc", "address": "10.1.1.253"})
    assert not run(**options).get("failed")
    result = info(tenants=tenants(plan))
    assert pod_findings(result, plan) == [("reachable", secret)]
    assert (
        f"reaches network '{secret}' through router '{plan.name}'. Remove that interface."
        in (result["findings"][-1]["reason"])
    )
    assert "ipum01-bmc" in {port["name"] for port in result["tenants"][0]["reachable"]["ports"]}
    # A share, so the tenant also sees the network; and a missing share.
    options["config"]["shares"] = [{"kind": "network", "name": secret, "project": "tenant-a"}]
    assert not run(prune=True, **options).get("failed")
    result = info(tenants=tenants(plan), fail_on_findings=True)
    assert result["failed"]
    assert pod_findings(result, plan) == [
        ("attachable", secret),
        ("visible", secret),
        ("unreachable", f"{plan.name}-storage"),
    ]
    assert "can create ports on network" in result["msg"]
    # Without credentials of the tenant, the module cannot list visible objects.
    (tenant,) = tenants(plan)
    del tenant["cloud"]
    result = info(tenants=[tenant])
    assert ("visible", secret) not in pod_findings(result, plan)
    assert ("attachable", secret) in pod_findings(result, plan)


def test_credentials_of_another_project_are_rejected(cloud: object) -> None:
    result = info(tenants=[{"project": "tenant-a", "cloud": "tenant-b", "networks": []}])
    assert result["failed"]
    assert "they are for another project" in result["msg"]
    result = info(tenants=[{"project": "missing", "networks": []}])
    assert result["msg"].startswith("Cannot find project 'missing'")
