# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of tasks of two plays that create the same OpenStack objects at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.openstack.catalog.task import OPENSTACK_POD_CATALOG
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import OVER_QUOTA, RejectedError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.openstack.project.task import OPENSTACK_POD_PROJECT
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.openstack.share.task import OPENSTACK_POD_SHARE
from ansible_collections.openipu.pod.plugins.module_utils.openstack.tenant.task import OPENSTACK_POD_TENANT
from ansible_collections.openipu.pod.plugins.module_utils.runner import Connector, Task

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import group, network, port, rule, subnet
from tests.unit.collection.openstack.shared_services import Collection, SharedCloud, SharedServices
from tests.unit.collection.openstack.task_support import NETWORKS, NOVA, OPTIONS, SERVER

Result = dict[str, Any]
MACS = ["0c:42:a1:00:05:01", "0c:42:a1:00:05:02"]
FLAVORS = Collection(
    "/flavors",
    "flavor",
    "flavors",
    lambda body: {**body, "id": f"id-of-{body['name']}", "extra_specs": {}},
    get="/flavors/detail",
)
VOLUME_TYPES = Collection(
    "/types",
    "volume_type",
    "volume_types",
    lambda body: {
        "id": "v1",
        "name": body["name"],
        "description": body["description"],
        "is_public": True,
        "extra_specs": {},
    },
)
SHARE_TYPES = Collection("/types", "share_type", "share_types", lambda body: {**body, "id": "t1"})
PROJECTS = Collection(
    "/projects", "project", "projects", lambda body: {"enabled": True, **body, "id": f"id-of-{body['name']}"}
)
USERS = Collection("/users", "user", "users", lambda body: {"enabled": True, **body, "id": f"id-of-{body['name']}"})
PORTS = Collection(
    "/ports",
    "port",
    "ports",
    lambda body: port(body["name"], body["mac_address"]),
    unique=lambda raw: raw["mac_address"],
)
VLANS = Collection(
    "/networks",
    "network",
    "networks",
    lambda body: network(body["name"], body["provider:segmentation_id"]),
    unique=lambda raw: raw["provider:segmentation_id"],
)
SUBNETS = Collection(
    "/subnets",
    "subnet",
    "subnets",
    lambda body: subnet(body["name"], "data", body["cidr"], enable_dhcp=body.get("enable_dhcp", True)),
    unique=lambda raw: raw["cidr"],
    status=400,
)


def perform(task: Task[Any], cloud: FakeCloud, check: bool = False, **options: Any) -> Result:
    """Perform a task, with errors as results."""
    checked = ArgumentSpecValidator(task.argument_spec, **task.constraints).validate(options)
    assert not checked.error_messages, checked.error_messages
    connected = Task(Connector({}, lambda params: cloud, lambda args: True), {}, task.run)
    return connected.perform(checked.validated_parameters, check, True)


def together(task: Task[Any], clouds: list[SharedCloud], *options: dict[str, Any]) -> list[Result]:
    """Perform a task once for each options, at the same time."""
    with ThreadPoolExecutor(len(clouds)) as pool:
        tasks = zip(clouds, options, strict=True)
        return [future.result(30) for future in [pool.submit(perform, task, cloud, **each) for cloud, each in tasks]]


def both(task: Task[Any], collections: list[Collection], responses: dict[str, Any], **options: Any) -> list[Result]:
    """Perform the same task twice at the same time."""
    services = SharedServices(*collections)
    clouds = [SharedCloud(services, dict(responses)) for _ in range(2)]
    return together(task, clouds, options, options)


@pytest.mark.parametrize(
    ("task", "collections", "responses", "options"),
    [
        (OPENSTACK_POD_CATALOG, [FLAVORS], {}, {"flavors": [{"name": "small", "vcpus": 1, "ram": 64}]}),
        (OPENSTACK_POD_CATALOG, [VOLUME_TYPES], {}, {"volume_types": [{"name": "fast", "description": "NVMe"}]}),
        (OPENSTACK_POD_PROJECT, [PROJECTS, USERS], {}, {"projects": [{"name": "team"}]}),
        (OPENSTACK_POD_PROJECT, [PROJECTS, USERS], {}, {"users": [{"name": "alice"}]}),
        (
            OPENSTACK_POD_NETWORK,
            [PORTS],
            NETWORKS,
            {"pod": "pod", "config": {"ports": [{"name": mac[-2:], "network": "data", "mac": mac} for mac in MACS]}},
        ),
        (
            OPENSTACK_POD_NETWORK,
            [VLANS, SUBNETS],
            {name: body for name, body in NETWORKS.items() if name not in ("GET /networks", "GET /subnets")},
            {
                "pod": "pod",
                "config": {
                    "networks": [{"name": "data", "physical_network": "phys", "vlan": 11}],
                    "subnets": [{"name": "data", "network": "data", "cidr": "10.5.0.0/16", "dhcp": True}],
                },
            },
        ),
        (OPENSTACK_POD_SHARE, [SHARE_TYPES], {}, {"share_types": [{"name": "nfs"}]}),
    ],
    ids=["flavor", "volume type", "project", "user", "ports", "networks", "share type"],
)
def test_both_create_the_same_objects(
    task: Task[Any], collections: list[Collection], responses: dict[str, Any], options: dict[str, Any]
) -> None:
    results = both(task, collections, responses, **options)
    assert [result.get("msg") for result in results] == [None, None]
    asked = {**options, **options.get("config", {})}
    for kind in [each.many for each in collections if each.many in asked]:
        names = [item["name"] for item in asked[kind]]
        assert sorted(name for result in results for name in result[kind]["created"]) == names
        assert sorted(name for result in results for name in result[kind]["unchanged"]) == names
    shown = [list(objects) for result in results for objects in result["diff"]["after"].values()]
    assert sorted(name for names in shown for name in names) == sorted(
        name for result in results for kind in result["diff"]["after"] for name in result[kind]["created"]
    )


def test_both_add_the_same_rule_to_a_security_group() -> None:
    rules = Collection(
        "/security-group-rules",
        "security_group_rule",
        "security_group_rules",
        lambda body: rule(body["direction"], body["protocol"], body["port_range_min"]),
        unique=lambda raw: raw["id"],
    )
    groups = Collection("/security-groups", "security_group", "security_groups", dict)
    services = SharedServices(rules, groups)
    services.objects[groups.post] = [{**group("ssh"), "security_group_rules": services.objects[rules.post]}]
    ssh = {"name": "ssh", "rules": [{"direction": "ingress", "protocol": "tcp", "port": 22}]}
    options = {"pod": "pod", "config": {"security_groups": [ssh]}}
    clouds = [SharedCloud(services, dict(NETWORKS)) for _ in range(2)]
    results = together(OPENSTACK_POD_NETWORK, clouds, options, options)
    assert [result.get("msg") for result in results] == [None, None]
    assert sorted(result["security_groups"]["updated"] for result in results) == [[], ["ssh"]]
    assert len(services.objects[rules.post]) == 1


CONFLICT = RejectedError("The service returned an error: it exists.", 409, "Conflict")
ONE_PORT: dict[str, Any] = {"pod": "pod", "config": {"ports": [{"name": "m1", "network": "data", "mac": MACS[0]}]}}


def test_a_key_pair_and_a_tag_of_another_play() -> None:
    pair = {"name": "laptop", "public_key": "ssh-ed25519 AAAA alice"}
    cloud = FakeCloud(
        {
            "GET /users": {"users": [{"id": "u2", "name": "alice", "enabled": True}]},
            "GET /os-keypairs": [{"keypairs": []}, {"keypairs": [{"keypair": pair}]}],
            "POST /os-keypairs": CONFLICT,
        }
    )
    result = perform(OPENSTACK_POD_PROJECT, cloud, users=[{"name": "alice", "key_pairs": [pair]}])
    assert (result["changed"], result["key_pairs"]["unchanged"]) == (False, ["alice/laptop"])
    cloud = FakeCloud(
        {
            "GET /projects": {"projects": [{"id": "p2"}]},
            "GET /roles": {"roles": []},
            "GET /projects/p2/tags": [{"tags": []}, {"tags": ["openipu.pod=vpod"]}],
            "PUT /projects/p2/tags/openipu.pod%3Dvpod": CONFLICT,
        }
    )
    result = perform(OPENSTACK_POD_TENANT, cloud, pod="vpod", project="team")
    assert (result["changed"], result["tags"]["unchanged"]) == (False, ["vpod"])


@pytest.mark.parametrize(
    ("error", "reads"),
    [
        (CONFLICT, 2),
        (RejectedError("Neutron returned an error: no quota.", 409, OVER_QUOTA), 1),
        (RejectedError("Neutron returned an error: not allowed.", 403), 1),
        (RejectedError("Neutron returned an error: internal error.", 500), 1),
    ],
    ids=["conflict", "quota", "rights", "defect"],
)
def test_a_rejection_without_another_play_stays_an_error(error: RejectedError, reads: int) -> None:
    cloud = FakeCloud({**NETWORKS, "POST /ports": error})
    result = perform(OPENSTACK_POD_NETWORK, cloud, **ONE_PORT)
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"] == f"Cannot create port 'm1': {error.message}"
    assert [key for key, _query in cloud.reads].count("GET /networks") == reads


def test_an_exceeded_quota_stays_an_error_when_another_play_created_the_object() -> None:
    quota = RejectedError("Neutron returned an error: no quota.", 409, OVER_QUOTA)
    made = {"ports": [port("m1", MACS[0])]}
    cloud = FakeCloud({**NETWORKS, "GET /ports": [{"ports": []}, {"ports": []}, made], "POST /ports": quota})
    assert perform(OPENSTACK_POD_NETWORK, cloud, **ONE_PORT)["msg"] == f"Cannot create port 'm1': {quota.message}"


def test_a_server_that_fails_to_start_is_not_started_again() -> None:
    failed = {**SERVER, "status": "ERROR", "fault": {"message": "no host. "}}
    cloud = FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /ports": {"ports": [port("vm-data", MACS[0])]},
            "GET /servers/detail": [{"servers": []}, {"servers": [failed]}],
            "POST /servers": {"server": {"id": "s1"}},
            "GET /servers/s1": {"server": failed},
        }
    )
    result = perform(OPENSTACK_POD_SERVER, cloud, **OPTIONS)
    assert result["msg"] == (
        "Cannot create server 'vm': it failed to start: no host. Nova keeps it with the status ERROR and the ID s1. "
        "Correct the cause, and run the task again, which recreates it."
    )
    assert [key for key, _body in cloud.writes] == ["POST /servers"]


def test_check_mode_reads_once() -> None:
    cloud = FakeCloud({**NETWORKS, "POST /ports": CONFLICT})
    result = perform(OPENSTACK_POD_NETWORK, cloud, check=True, **ONE_PORT)
    assert (result["changed"], result["ports"]["created"], cloud.writes) == (True, ["m1"], [])
    assert [key for key, _query in cloud.reads].count("GET /networks") == 1
