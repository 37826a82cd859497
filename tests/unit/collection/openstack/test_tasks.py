# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of the OpenStack modules, from options to requests and results."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog.task import OPENSTACK_POD_CATALOG
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import CloudError, RejectedError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.info_task import (
    OPENSTACK_POD_NETWORK_INFO,
)
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.openstack.project.task import OPENSTACK_POD_PROJECT
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.task import OPENSTACK_POD_TENANT
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from ansible_collections.openipu.pod.plugins.module_utils.runner import TaskError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import PROJECT, network, port
from tests.unit.collection.openstack.task_support import ATTACHED, MAC, NETWORKS, NOVA, OPTIONS, SERVER, run


def test_orphaned_addresses_are_explained_and_few() -> None:
    """A killed Neutron can leave records of addresses without ports."""
    ports = [{"name": f"m{n}", "network": "data", "addresses": [f"10.5.0.{n}"]} for n in range(1, 41)]
    used = RejectedError("Neutron returned an error: IP address used.", 409, "IpAddressAlreadyAllocated")
    cloud = FakeCloud({**NETWORKS, "POST /ports": used})
    with pytest.raises(TaskError, match="a killed Neutron left its record") as failed:
        run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config={"ports": ports})
    assert failed.value.result["ports"]["created"] == []
    sizes = [len(body["ports"]) for key, body in cloud.writes if key == "POST /ports"]
    assert max(sizes) == 16


def test_an_orphaned_address_for_an_existing_port_is_explained() -> None:
    used = RejectedError("Neutron returned an error: IP address used.", 409, "IpAddressAlreadyAllocated")
    cloud = FakeCloud(
        {**NETWORKS, "GET /ports": {"ports": [port("m1", MAC, "10.5.0.2")]}, f"PUT /ports/port-{MAC}": used}
    )
    with pytest.raises(TaskError, match=r"Cannot change port 'm1': .* a killed Neutron left its record"):
        config = {"ports": [{"name": "m1", "network": "data", "addresses": ["10.5.0.1"]}]}
        run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=config)


def test_network() -> None:
    config = {"ports": [{"name": "m1", "network": "data", "mac": MAC, "addresses": ["10.5.0.1"]}]}
    made = port("m1", MAC, "10.5.0.1")
    responses = {**NETWORKS, "POST /ports": {"ports": [made]}}
    cloud = FakeCloud(responses)
    predicted = run(OPENSTACK_POD_NETWORK, cloud, check_mode=True, pod="pod", config=config)
    assert (predicted["ports"]["created"], cloud.writes) == (["m1"], [])
    result = run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=config)
    assert (result["ports"], result["diff"]) == (predicted["ports"], predicted["diff"])
    ((key, body),) = cloud.writes
    assert (key, body["ports"][0]["network_id"]) == ("POST /ports", "id-of-data")
    cloud = FakeCloud({**NETWORKS, "GET /ports": {"ports": [made]}})
    again = run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=config)
    assert (again["changed"], again["ports"]["unchanged"], cloud.writes) == (False, ["m1"], [])
    assert not [key for key, _query in cloud.reads if "quotas" in key]  # read only when objects are created
    info = run(OPENSTACK_POD_NETWORK_INFO, cloud, pod="pod")
    assert [item["name"] for item in info["ports"]] == ["m1"]
    with pytest.raises(UserError, match="Cannot create 1 more port: the quota of the project is 3, and 3 are"):
        quota = {"quota": {"port": {"limit": 3, "used": 3}}}
        cloud = FakeCloud({**responses, f"GET /quotas/{PROJECT}/details.json": quota})
        run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=config)


class UnreachableCloud(FakeCloud):
    """Cloud that accepts no request, not even a login."""

    def authorize(self) -> str:
        raise AssertionError("The task contacts the cloud.")

    def request(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("The task contacts the cloud.")


def test_invalid_options_are_reported_before_the_cloud_is_contacted() -> None:
    config = {"ports": [{"name": name, "network": "data", "mac": MAC} for name in ("m1", "m2")]}
    with pytest.raises(UserError, match=f"Cannot use MAC {MAC} for port 'm1' and port 'm2' of network 'data'"):
        run(OPENSTACK_POD_NETWORK, UnreachableCloud({}), pod="pod", config=config)
    servers = [{"name": name, "networks": [{"network": "data", "addresses": ["10.5.0.1"]}]} for name in ("m1", "m2")]
    with pytest.raises(UserError, match=r"Cannot use address 10\.5\.0\.1 for port"):
        run(OPENSTACK_POD_SERVER, UnreachableCloud({}), pod="pod", servers=servers)


def test_network_with_a_missing_project() -> None:
    config = {"shares": [{"name": "data", "project": "missing"}]}
    cloud = FakeCloud({**NETWORKS, "GET /projects": {"projects": []}})
    with pytest.raises(TaskError) as failure:
        run(OPENSTACK_POD_NETWORK, cloud, pod="pod", config=config)
    assert failure.value.message == (
        "Cannot create share 'network/data/missing': project 'missing' does not exist. Create it first, or correct "
        "the name."
    )
    assert cloud.writes == []


def test_server_is_created_after_its_ports() -> None:
    made = port("vm-data", MAC, "10.5.0.1")
    cloud = FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /servers/detail": [{"servers": []}, {"servers": []}, {"servers": [SERVER]}],
            "POST /ports": {"ports": [made]},
            "POST /servers": {"server": {"id": "s1"}},
            "GET /servers/s1": [{"server": {**SERVER, "status": status}} for status in ("BUILD", "ACTIVE")],
        }
    )
    predicted = run(OPENSTACK_POD_SERVER, cloud, check_mode=True, **OPTIONS)
    result = run(OPENSTACK_POD_SERVER, cloud, **OPTIONS)
    assert [result[part] for part in ("ports", "servers", "diff")] == [
        predicted[part] for part in ("ports", "servers", "diff")
    ]
    assert (result["ports"]["created"], result["servers"]["created"]) == (["vm-data"], ["vm"])
    assert [key for key, _body in cloud.writes] == ["POST /ports", "POST /servers"]
    assert cloud.writes[1][1]["server"]["networks"] == [{"port": made["id"]}]
    ids = {"ports": {"vm-data": made["id"]}, "servers": {"vm": "s1"}}
    assert (predicted["ids"], result["ids"]) == ({}, ids)
    assert result["details"] == {"vm": {"id": "s1", "status": "ACTIVE", "addresses": {"data": ["10.5.0.1"]}}}
    again = run(OPENSTACK_POD_SERVER, FakeCloud({**cloud.responses, "GET /ports": {"ports": [made]}}), **OPTIONS)
    assert (again["changed"], again["servers"]["unchanged"], again["ids"]) == (False, ["vm"], ids)


def test_server_that_is_rejected_keeps_the_result_of_its_ports() -> None:
    cloud = FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /servers/detail": {"servers": []},
            "POST /ports": {"ports": [port("vm-data", MAC)]},
            "POST /servers": CloudError("Nova returned an error: no host.", 400),
        }
    )
    with pytest.raises(TaskError) as failure:
        run(OPENSTACK_POD_SERVER, cloud, **OPTIONS)
    assert failure.value.message == "Cannot create server 'vm': Nova returned an error: no host."
    assert failure.value.result["changed"]
    assert failure.value.result["ports"]["created"] == ["vm-data"]
    assert list(failure.value.result["ids"]) == ["ports"]


def test_server_is_removed_before_its_ports() -> None:
    own = ATTACHED
    unused = {**port("vm-old", MAC), "id": "p2"}
    other = {**port("other-data", MAC), "id": "p3"}
    cloud = FakeCloud(
        {**NETWORKS, "GET /servers/detail": {"servers": [SERVER]}, "GET /ports": {"ports": [own, unused, other]}}
    )
    result = run(OPENSTACK_POD_SERVER, cloud, state="absent", pod="pod", servers=[{"name": "vm"}])
    assert (result["servers"]["removed"], sorted(result["ports"]["removed"])) == (["vm"], ["vm-data", "vm-old"])
    keys = [key for key, _body in cloud.writes]
    assert (keys[0], result["ids"]) == ("DELETE /servers/s1", {})
    assert sorted(keys[1:]) == ["DELETE /ports/p2", f"DELETE /ports/{own['id']}"]


@pytest.mark.parametrize(
    ("server", "responses", "options", "message"),
    [
        (SERVER, {}, {"pod": "other"}, "Cannot change server 'vm': it does not belong to 'other'."),
        (None, {}, {"servers": [{"name": "vm"}]}, "Cannot start server 'vm': a new server needs image and flavor."),
        (
            None,
            {"GET /flavors/detail": {"flavors": []}},
            {},
            "Cannot use flavor 'small' for server 'vm': it does not exist",
        ),
        (None, {}, {"project": "missing"}, "Cannot find project 'missing'. Create it first, or correct the name."),
        (None, {}, {"project": "0" * 32}, "Cannot create or change port 'vm-data': the credentials are not for"),
    ],
)
def test_server_checks(server: Any, responses: Any, options: Any, message: str) -> None:
    listed = {"GET /servers/detail": {"servers": [server] if server else []}, "GET /projects": {"projects": []}}
    cloud = FakeCloud({**NETWORKS, **NOVA, **listed, **responses})
    cloud.responses["GET /networks"] = {"networks": [network("data"), network("data", project_id="0" * 32)]}
    with pytest.raises(UserError) as failure:
        run(OPENSTACK_POD_SERVER, cloud, **{**OPTIONS, **options})
    assert message in failure.value.message
    assert cloud.writes == []


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ({"GET /flavors/detail": {"flavors": []}}, "Cannot use flavor 'small' for server 'vm': it does not exist"),
        ({"GET /images": {"images": []}}, "Cannot use image 'ubuntu' for server 'vm': 0 active images"),
    ],
)
def test_check_mode_accepts_or_rejects_a_missing_image_or_flavor(missing: dict[str, Any], message: str) -> None:
    cloud = FakeCloud({**NETWORKS, **NOVA, "GET /servers/detail": {"servers": []}, **missing})
    assert run(OPENSTACK_POD_SERVER, cloud, True, **OPTIONS)["servers"]["created"] == ["vm"]
    for check_mode in (True, False):
        with pytest.raises(UserError) as failure:
            run(OPENSTACK_POD_SERVER, cloud, check_mode, predict_missing=False, **OPTIONS)
        assert failure.value.message.startswith(message)
    # Existing servers are not started.
    cloud.responses["GET /servers/detail"] = {"servers": [{**SERVER, "image": None}]}
    cloud.responses["GET /ports"] = {"ports": [ATTACHED]}
    assert run(OPENSTACK_POD_SERVER, cloud, True, predict_missing=False, **OPTIONS)["servers"]["unchanged"] == ["vm"]


def test_catalog_recreates_a_flavor_with_its_projects() -> None:
    flavor = {
        "id": "f1",
        "name": "small",
        "vcpus": 1,
        "ram": 64,
        "disk": 1,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "swap": "",
        "os-flavor-access:is_public": False,
        "extra_specs": {"hw:cpu_policy": "dedicated"},
    }
    cloud = FakeCloud(
        {
            "GET /flavors/detail": {"flavors": [flavor]},
            "GET /flavors/f1/os-flavor-access": {"flavor_access": [{"tenant_id": "p2"}]},
            "POST /flavors": {"flavor": {"id": "f2"}},
        }
    )
    result = run(OPENSTACK_POD_CATALOG, cloud, flavors=[{"name": "small", "vcpus": 2}])
    assert result["flavors"]["recreated"] == ["small"]
    assert [key for key, _body in cloud.writes] == [
        "DELETE /flavors/f1",
        "POST /flavors",
        "POST /flavors/f2/os-extra_specs",
        "POST /flavors/f2/action",
    ]
    assert cloud.writes[1][1]["flavor"]["ram"] == 64
    assert cloud.writes[3][1] == {"addTenantAccess": {"tenant": "p2"}}


def test_project_with_user_quota_and_role() -> None:
    cloud = FakeCloud(
        {
            "GET /projects": {"projects": []},
            "GET /users": {"users": []},
            "GET /roles": {"roles": [{"id": "r1", "name": "member"}]},
            "POST /projects": {"project": {"id": "p2"}},
            "POST /users": {"user": {"id": "u2"}},
        }
    )
    options = {
        "projects": [{"name": "team", "quotas": {"compute": {"cores": 4, "ram": 64}}}],
        "users": [
            {
                "name": "alice",
                "roles": [{"project": "team"}],
                "key_pairs": [{"name": "laptop", "public_key": "ssh-ed25519 AAAA alice"}],
            }
        ],
    }
    result = run(OPENSTACK_POD_PROJECT, cloud, **options)
    assert [key for key, _body in cloud.writes] == [
        "POST /projects",
        "POST /users",
        "PUT /projects/p2/users/u2/roles/r1",
        "PUT /os-quota-sets/p2",
        "POST /os-keypairs",
    ]
    assert cloud.writes[3][1] == {"quota_set": {"cores": 4, "ram": 64}}
    assert result["quotas"]["created"] == ["team/compute/cores", "team/compute/ram"]
    assert result["key_pairs"]["created"] == ["alice/laptop"]


def test_tenant_note_and_role() -> None:
    cloud = FakeCloud(
        {
            "GET /projects": {"projects": [{"id": "p2"}]},
            "GET /roles": {"roles": [{"id": "r1", "name": "admin"}]},
            "GET /projects/p2/tags": {"tags": ["openipu.pod=other"]},
            "GET /role_assignments": {"role_assignments": []},
        }
    )
    result = run(OPENSTACK_POD_TENANT, cloud, pod="vpod", project="team", roles=["admin"])
    assert (result["tags"]["created"], result["roles"]["created"], result["other_pods"]) == (
        ["vpod"],
        ["admin"],
        ["other"],
    )
    assert [key for key, _body in cloud.writes] == [
        "PUT /projects/p2/tags/openipu.pod%3Dvpod",
        "PUT /projects/p2/tags/openipu.role%3Dr1%3Au1%3Avpod",
        "PUT /projects/p2/users/u1/roles/r1",
    ]
    assert result["other_projects"] == []
    cloud = FakeCloud({**cloud.responses, "GET /projects": {"projects": []}})
    deleted = run(OPENSTACK_POD_TENANT, cloud, pod="vpod", project="team", state="absent")
    assert (deleted["changed"], deleted["other_pods"], cloud.writes) == (False, [], [])


def test_other_projects_with_a_record_of_the_vpod_are_reported() -> None:
    projects = [{"id": id, "name": f"name-of-{id}"} for id in ("p3", "p2", "p1")]
    cloud = FakeCloud(
        {
            "GET /projects": [{"projects": [{"id": "p2"}]}, {"projects": projects}],
            "GET /roles": {"roles": []},
            "GET /projects/p2/tags": {"tags": ["openipu.pod=vpod"]},
        }
    )
    result = run(OPENSTACK_POD_TENANT, cloud, True, pod="vpod", project="team", state="absent")
    assert result["other_projects"] == ["name-of-p1", "name-of-p3"]
    assert ("GET /projects", {"tags": "openipu.pod=vpod"}) in cloud.reads
    # The project was removed.
    cloud.responses["GET /projects"] = [{"projects": []}, {"projects": projects}]
    result = run(OPENSTACK_POD_TENANT, cloud, True, pod="vpod", project="team", state="absent")
    assert result["other_projects"] == ["name-of-p1", "name-of-p2", "name-of-p3"]


@pytest.mark.parametrize(("writes", "seen"), [(0, True), (1, True), (2, False)], ids=["before", "meanwhile", "after"])
def test_of_two_concurrent_records_the_later_one_is_reported(writes: int, seen: bool) -> None:
    """The other run records its vPOD before or after the record of this one, or after this task."""
    projects = [{"id": "p2", "name": "team"}]

    class Keystone(FakeCloud):
        def request(self, service: str, method: str, path: str, **options: Any) -> Any:
            if len(self.writes) == writes and len(projects) == 1:
                projects.append({"id": "p3", "name": "team-b"})
            return super().request(service, method, path, **options)

    found = [{"projects": [{"id": "p2"}]}, {"projects": projects}]
    cloud = Keystone({"GET /projects": found, "GET /roles": {"roles": []}, "GET /projects/p2/tags": {"tags": []}})
    result = run(OPENSTACK_POD_TENANT, cloud, pod="vpod", project="team")
    assert [key for key, _body in cloud.writes] == ["PUT /projects/p2/tags/openipu.pod%3Dvpod"]
    assert result["other_projects"] == ["team-b"] * seen


def test_created_vipu_users_of_a_vpod_are_recorded() -> None:
    tags = ["openipu.pod=vpod", "openipu.vipu_user=old:vpod", "openipu.vipu_user=bob:vpod2"]
    responses = {
        "GET /projects": {"projects": [{"id": "p2"}]},
        "GET /roles": {"roles": []},
        "GET /projects/p2/tags": {"tags": tags},
    }
    path = "/projects/p2/tags/openipu.vipu_user%3D"
    unmanaged = run(OPENSTACK_POD_TENANT, FakeCloud(responses), pod="vpod", project="team")
    assert (unmanaged["changed"], unmanaged["other_vipu_users"]) == (False, ["bob"])
    cloud = FakeCloud(responses)
    result = run(OPENSTACK_POD_TENANT, cloud, pod="vpod", project="team", vipu_users=["bob"])
    assert (result["vipu_users"]["created"], result["vipu_users"]["removed"]) == (["bob"], ["old"])
    assert [key for key, _body in cloud.writes] == [f"PUT {path}bob%3Avpod", f"DELETE {path}old%3Avpod"]
    cloud = FakeCloud(responses)
    result = run(OPENSTACK_POD_TENANT, cloud, pod="vpod", project="team", state="absent")
    assert result["vipu_users"]["removed"] == ["old"]
    assert [key for key, _body in cloud.writes] == [
        f"DELETE {path}old%3Avpod",
        "DELETE /projects/p2/tags/openipu.pod%3Dvpod",
    ]
