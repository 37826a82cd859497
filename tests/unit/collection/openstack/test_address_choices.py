# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that get the first free one of several addresses, even while other tasks choose."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import RejectedError
from ansible_collections.openipu.pod.plugins.module_utils.openstack.network.task import OPENSTACK_POD_NETWORK
from ansible_collections.openipu.pod.plugins.module_utils.openstack.server.task import OPENSTACK_POD_SERVER
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError

from tests.unit.collection.openstack.fake_cloud import FakeCloud
from tests.unit.collection.openstack.neutron_raw import changes, network, plan, port, state_with
from tests.unit.collection.openstack.shared_services import Collection, SharedCloud, SharedServices
from tests.unit.collection.openstack.task_support import NETWORKS, NOVA, OPTIONS
from tests.unit.collection.openstack.test_parallel_tasks import perform, together

A, B = "0c:42:a1:00:05:01", "0c:42:a1:00:05:02"
CHOICES = ["10.5.0.10", "10.5.0.11"]
PORTS = Collection(
    "/ports",
    "port",
    "ports",
    lambda body: port(body["name"], body["name"], body["fixed_ips"][0]["ip_address"]),
    unique=lambda raw: raw["fixed_ips"][0]["ip_address"],
)


def one(name: str = "vm", **more: Any) -> dict[str, Any]:
    return {"name": name, "network": "data", "address_choices": CHOICES, **more}


def addresses(ports: list[dict[str, Any]], *actual: dict[str, Any], **raw: Any) -> list[list[str] | None]:
    """Return the addresses that the plan sets, by desired port."""
    return [(step.desired or {}).get("addresses") for step in plan({"ports": ports}, state_with(*actual, **raw))]


@pytest.mark.parametrize(
    ("actual", "chosen"),
    [
        ([], ["10.5.0.10"]),
        ([port("other", B, "10.5.0.10", tags=[], project_id="p2")], ["10.5.0.11"]),
        ([port("", B, "10.5.0.10", device_owner="network:dhcp")], ["10.5.0.11"]),
        ([port("other", B, "10.5.0.10", on="other")], ["10.5.0.10"]),  # networks can have the same addresses
        ([port("vm", A, "10.5.0.77")], ["10.5.0.10"]),  # an unused port
    ],
)
def test_the_first_free_address_is_chosen(actual: list[dict[str, Any]], chosen: list[str]) -> None:
    assert addresses([one()], *actual, network=[network("data"), network("other", 12)]) == [chosen]


@pytest.mark.parametrize(
    "actual",
    [port("vm", A, "10.5.0.11"), port("vm", A, "10.5.0.77", device_owner="compute:nova", device_id="s1")],
)
def test_a_port_in_use_or_with_one_of_the_addresses_stays_unchanged(actual: dict[str, Any]) -> None:
    assert changes(plan({"ports": [one()]}, state_with(actual))) == []


def test_each_port_gets_an_address_of_its_own() -> None:
    assert addresses([one("vm1"), one("vm2")]) == [["10.5.0.10"], ["10.5.0.11"]]
    fixed = {"name": "vm2", "network": "data", "addresses": ["10.5.0.10"]}
    assert addresses([one("vm1"), fixed]) == [["10.5.0.11"], ["10.5.0.10"]]


def test_no_free_address_is_an_error() -> None:
    with pytest.raises(UserError) as failure:
        addresses([one("vm1"), one("vm2")], port("other", B, "10.5.0.10"))
    assert failure.value.message == (
        "Cannot choose an address for port 'vm2': ports of network 'data' have all of 10.5.0.10, 10.5.0.11. "
        "Add an address, or remove such a port."
    )


@pytest.mark.parametrize("address", ["10.5.0.300", "10.6.0.1"])
def test_addresses_that_no_port_can_have_are_rejected(address: str) -> None:
    with pytest.raises(UserError) as failure:
        addresses([one(address_choices=[address])])
    assert address in failure.value.message


def without_ports() -> dict[str, Any]:
    return {path: body for path, body in NETWORKS.items() if path != "GET /ports"}


def test_tasks_at_the_same_time_get_different_addresses() -> None:
    services = SharedServices(PORTS)
    clouds = [SharedCloud(services, without_ports()) for _ in range(2)]
    results = together(
        OPENSTACK_POD_NETWORK, clouds, *({"pod": name, "config": {"ports": [one(name)]}} for name in ("red", "blue"))
    )
    assert [result.get("msg") for result in results] == [None, None]
    assert sorted(result["ports"]["created"] for result in results) == [["blue"], ["red"]]
    assert sorted(PORTS.unique(raw) for raw in services.objects[PORTS.post]) == CHOICES


def test_a_task_without_an_address_for_it_fails() -> None:
    services = SharedServices(PORTS)
    clouds = [SharedCloud(services, without_ports()) for _ in range(2)]
    ports = [one(name, address_choices=CHOICES[:1]) for name in ("red", "blue")]
    results = together(
        OPENSTACK_POD_NETWORK, clouds, *({"pod": each["name"], "config": {"ports": [each]}} for each in ports)
    )
    assert sorted(bool(result.get("failed")) for result in results) == [False, True]
    [message] = [result["msg"] for result in results if "msg" in result]
    assert "ports of network 'data' have all of 10.5.0.10. Add" in message


def test_a_server_gets_the_next_address_when_another_client_takes_the_first() -> None:
    taken = {"ports": [port("other", B, "10.5.0.10", project_id="p2")]}
    conflict = RejectedError("Neutron returned an error: it is in use.", 409, "IpAddressAlreadyAllocated")
    made = {"ports": [port("vm-data", A, "10.5.0.11")]}
    empty: dict[str, Any] = {"ports": []}
    cloud = FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /ports": [empty, empty, taken],  # two requests for each read
            "POST /ports": [conflict, made],
            "GET /servers/detail": {"servers": []},
            "POST /servers": {"server": {"id": "s1"}},
            "GET /servers/s1": {"server": {"id": "s1", "status": "ACTIVE"}},
        }
    )
    networks = [{"network": "data", "address_choices": CHOICES}]
    servers = [{**OPTIONS["servers"][0], "networks": networks}]  # type: ignore[dict-item]
    result = perform(OPENSTACK_POD_SERVER, cloud, pod="pod", servers=servers)
    assert "msg" not in result, result["msg"]
    sent = [body["ports"][0]["fixed_ips"] for key, body in cloud.writes if key == "POST /ports"]
    assert sent == [[{"ip_address": "10.5.0.10"}], [{"ip_address": "10.5.0.11"}]]
