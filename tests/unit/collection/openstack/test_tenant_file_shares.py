# SPDX-License-Identifier: GPL-3.0-or-later
"""Access rules of shared file systems that admit the addresses of other tenants."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import RejectedError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.file_shares import find_share_leaks
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.info_task import (
    OPENSTACK_POD_NETWORK_INFO,
)
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.reach import Tenant, reachable_networks
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from ansible_collections.openipu.pod.plugins.module_utils.runner import Run, TaskError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import PROJECT, network, subnet

TENANT = Tenant("me", "mine", PROJECT, frozenset({"storage", "control"}))
OVERLAY = {"provider:physical_network": None, "provider:segmentation_id": 500}
SUBNETS = {
    "storage": "10.1.6.0/24",
    "other-storage": "10.1.7.0/24",
    "control": "10.4.0.0/24",
    "other-control": "10.4.0.0/24",
    "own": "192.168.0.0/24",
    "own-of-other": "192.168.0.0/24",
}


def rbac(on: str, target: str) -> dict[str, Any]:
    return {
        "id": f"{on}-{target}",
        "project_id": "p1",
        "object_type": "network",
        "object_id": f"id-of-{on}",
        "action": "access_as_shared",
        "target_tenant": target,
    }


RAW: dict[str, list[dict[str, Any]]] = {
    "network": [
        network("storage"),
        network("other-storage", 12),
        network("control", **OVERLAY),
        network("other-control", **OVERLAY),
        network("own", project_id="mine", **OVERLAY),
        network("own-of-other", project_id="theirs", **OVERLAY),
    ],
    "subnet": [subnet(name, name, cidr) for name, cidr in SUBNETS.items()],
    "router": [],
    "port": [],
    "share": [
        *(rbac(name, "mine") for name in ("storage", "control")),
        *(rbac(name, "theirs") for name in ("other-storage", "other-control")),
    ],
}


def share(project: str, *to: str, **more: Any) -> dict[str, Any]:
    """Return a share with its access rules, as ``fetch_file_shares`` does."""
    rules = [{"access_type": "ip", "access_to": each, **more} for each in to]
    return {"id": "s1", "name": "data", "project_id": project, "share_network_id": None, "rules": rules}


def findings(*shares: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = find_share_leaks(TENANT, RAW, reachable_networks(RAW, "mine"), list(shares), {"theirs": "team"})
    return [(each["kind"], each["network"], each["share"]) for each in found]


@pytest.mark.parametrize(
    "rule",
    [
        "10.1.6.0/24",
        "10.1.6.9",
        "10.4.0.0/24",  # the control network of another tenant has the same addresses
        "192.168.0.7",
        "192.0.2.0/24",  # no tenant has these addresses
        "fd00::/64",
        "a name",
    ],
)
def test_rules_for_the_networks_of_the_tenant(rule: str) -> None:
    assert findings(share("mine", rule)) == []


@pytest.mark.parametrize("rule", ["10.1.7.0/24", "10.1.7.9", "10.1.6.0/23", "0.0.0.0/0"])
def test_a_rule_for_the_network_of_another_tenant(rule: str) -> None:
    assert findings(share("mine", "10.1.6.0/24", rule)) == [("exposed", "other-storage", "data")]


@pytest.mark.parametrize("rule", ["10.1.6.0/24", "10.1.6.9", "10.0.0.0/8", "0.0.0.0/0"])
@pytest.mark.parametrize("owner", ["theirs", "removed"])
def test_a_share_of_another_project_that_the_tenant_can_mount(owner: str, rule: str) -> None:
    assert findings(share(owner, "10.1.7.0/24", rule)) == [("mountable", "storage", "data")]


def test_other_projects_may_use_a_common_network() -> None:
    tenant = Tenant("me", "mine", PROJECT, TENANT.allowed, frozenset({"storage"}))
    shares = [share("theirs", "10.1.6.0/24")]
    assert find_share_leaks(tenant, RAW, reachable_networks(RAW, "mine"), shares, {}) == []


def test_shares_of_others_for_their_own_networks() -> None:
    assert findings(share("theirs", "10.1.7.0/24", "10.4.0.0/24", "192.168.0.0/24")) == []


def test_other_types_of_rules_do_not_depend_on_addresses() -> None:
    assert findings(share("theirs", "10.1.6.9", access_type="user"), share("mine", "alice", access_type="cert")) == []


def test_shares_on_a_network_of_their_own_are_reached_only_there() -> None:
    for owner in ("mine", "theirs"):
        assert findings({**share(owner, "0.0.0.0/0"), "share_network_id": "n1"}) == []


def test_reasons_name_both_projects_and_the_remedy() -> None:
    for owner, reason in (
        (
            "theirs",
            "Tenant 'me' can mount share 'data' of project 'team' from network 'storage': its access rule '10.0.0.0/8' "
            "allows these addresses. Remove the rule.",
        ),
        (
            "mine",
            "Share 'data' of tenant 'me' has the access rule '10.0.0.0/8', which allows addresses of network "
            "'other-storage'. Allow only the networks of the tenant.",
        ),
    ):
        shares = [share(owner, "10.0.0.0/8")]
        (found,) = find_share_leaks(TENANT, RAW, reachable_networks(RAW, "mine"), shares, {"theirs": "team"})
        assert found["reason"] == reason


MINE = "0" * 32


def cloud(**responses: Any) -> FakeCloud:
    """Return a cloud in which the tenant has the storage network, and another project has a share for it."""
    rules = {"access_list": [{"access_type": "ip", "access_to": "10.1.6.0/24"}]}
    return FakeCloud(
        {
            "GET /networks": {"networks": [network("storage")]},
            "GET /subnets": {"subnets": [subnet("storage", "storage", "10.1.6.0/24")]},
            "GET /routers": {"routers": []},
            "GET /rbac-policies": {"rbac_policies": [rbac("storage", MINE)]},
            "GET /ports": {"ports": []},
            f"GET /quota-sets/{MINE}": {"quota_set": {}},
            "GET /shares/detail": {"shares": [{**share("theirs"), "rules": None}]},
            "GET /share-access-rules": rules,
            **responses,
        }
    )


def check(fake: FakeCloud, **options: Any) -> dict[str, Any]:
    spec = OPENSTACK_POD_NETWORK_INFO.argument_spec
    tenants = [{"project": MINE, "networks": ["storage"]}]
    checked = ArgumentSpecValidator(spec).validate({"tenants": tenants, **options})
    assert not checked.error_messages
    return OPENSTACK_POD_NETWORK_INFO.run(Run(checked.validated_parameters, False, False, fake))


def test_the_module_reads_the_shares_of_all_projects() -> None:
    fake = cloud()
    (found,) = check(fake)["findings"]
    assert (found["kind"], found["network"], found["share"]) == ("mountable", "storage", "data")
    assert ("GET /shares/detail", {"all_tenants": "1"}) in fake.reads
    with pytest.raises(TaskError, match="can mount share 'data' of project 'theirs'"):
        check(fake, fail_on_findings=True)


def test_a_cloud_without_manila() -> None:
    fake = cloud()
    fake.has_service = lambda service: service != "shared_file_system"  # type: ignore[method-assign]
    assert check(fake)["findings"] == []
    assert not [key for key, _query in fake.reads if "share" in key or "subnets" in key]


def test_shares_that_the_credentials_cannot_read_are_not_ignored() -> None:
    forbidden = RejectedError("Manila returned an error: Forbidden.", 403)
    with pytest.raises(UserError, match="Cannot read the shares of all projects: the credentials are not for an"):
        check(cloud(**{f"GET /quota-sets/{MINE}": forbidden}))


def test_shares_that_are_deleted_in_the_meantime_are_skipped() -> None:
    missing = RejectedError("Manila returned an error: not found.", 404)
    assert check(cloud(**{"GET /share-access-rules": missing}))["findings"] == []
