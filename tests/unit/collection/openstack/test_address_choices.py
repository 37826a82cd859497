# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that get the first free one of several addresses, even while other tasks choose."""

from __future__ import annotations

import threading
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
    kind="IpAddressAlreadyAllocated",
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


def test_an_unused_port_of_another_network_gets_an_address() -> None:
    """A port with the MAC moves to the network, in which its address may be in use."""
    actual = [port("vm", A, "10.5.0.10", on="other"), port("rival", B, "10.5.0.10")]
    networks = [network("data"), network("other", 12)]
    [step] = plan({"ports": [one(mac=A)]}, state_with(*actual, network=networks))
    assert (step.action.value, step.desired["addresses"]) == ("recreate", ["10.5.0.11"])


def test_each_port_gets_an_address_of_its_own() -> None:
    assert addresses([one("vm1"), one("vm2")]) == [["10.5.0.10"], ["10.5.0.11"]]
    fixed = {"name": "vm2", "network": "data", "addresses": ["10.5.0.10"]}
    assert addresses([one("vm1"), fixed]) == [["10.5.0.11"], ["10.5.0.10"]]


def test_no_free_address_is_an_error() -> None:
    with pytest.raises(UserError) as failure:
        addresses([one("vm1"), one("vm2")], port("other", B, "10.5.0.10"))
    assert failure.value.message == (
        "Cannot choose an address for port 'vm2': all of 10.5.0.10, 10.5.0.11 are in use in network 'data'. "
        "Add an address, or remove such a port."
    )


@pytest.mark.parametrize("address", ["10.5.0.300", "10.6.0.1"])
def test_addresses_that_no_port_can_have_are_rejected(address: str) -> None:
    with pytest.raises(UserError) as failure:
        addresses([one(address_choices=[address])])
    assert address in failure.value.message


def without_ports() -> dict[str, Any]:
    return {path: body for path, body in NETWORKS.items() if path != "GET /ports"}


class RivalCloud(SharedCloud):
    """Cloud of one of several tasks. In each round, all read, then request the same address; one gets it."""

    def __init__(self, services: SharedServices, rounds: list[threading.Barrier]) -> None:
        super().__init__(services, without_ports())
        self._rounds = iter(rounds)

    def request(self, service: str, method: str, path: str, **options: Any) -> Any:
        if (method, path) == ("POST", PORTS.post):
            next(self._rounds).wait(10)
        return super().request(service, method, path, **options)


def test_tasks_at_the_same_time_get_different_addresses() -> None:
    names = ["red", "blue", "green", "black", "white"]
    choices = [f"10.5.0.{number}" for number in range(10, 20)]
    services = SharedServices(PORTS, clouds=len(names))
    rounds = [threading.Barrier(rivals) for rivals in range(len(names), 0, -1)]
    results = together(
        OPENSTACK_POD_NETWORK,
        [RivalCloud(services, rounds) for _ in names],
        *({"pod": name, "config": {"ports": [one(name, address_choices=choices)]}} for name in names),
    )
    assert [result.get("msg") for result in results] == [None] * len(names)
    assert [result["ports"]["created"] for result in results] == [[name] for name in names]
    assert [PORTS.unique(raw) for raw in services.objects[PORTS.post]] == choices[: len(names)]


def in_use() -> RejectedError:
    return RejectedError("Neutron returned an error: it is in use.", 409, "IpAddressAlreadyAllocated")


@pytest.mark.parametrize("unused", [[], [port("vm", A, "10.5.0.77", dns_name="")]], ids=["new", "unused"])
def test_an_address_that_neutron_rejects_is_not_chosen_again(unused: list[dict[str, Any]]) -> None:
    """Neutron records an address before other clients see its port."""
    made = port("vm", A, "10.5.0.11")
    responses = {
        **NETWORKS,
        "GET /ports": {"ports": unused},
        "POST /ports": [in_use(), {"ports": [made]}],
        f"PUT /ports/port-{A}": [in_use(), {"port": made}],
    }
    cloud = FakeCloud(responses)
    result = perform(OPENSTACK_POD_NETWORK, cloud, pod="pod", config={"ports": [one()]})
    assert (result.get("msg"), result["changed"]) == (None, True)
    bodies = [body.get("port") or body["ports"][0] for key, body in cloud.writes if "/tags" not in key]
    assert [body["fixed_ips"] for body in bodies] == [[{"ip_address": "10.5.0.10"}], [{"ip_address": "10.5.0.11"}]]


def test_no_record_of_another_order_is_to_be_deleted() -> None:
    cloud = FakeCloud({**NETWORKS, "POST /ports": in_use()})
    result = perform(OPENSTACK_POD_NETWORK, cloud, pod="pod", config={"ports": [one()]})
    assert result["msg"].startswith("Cannot choose an address for port 'vm': all of 10.5.0.10, 10.5.0.11 are in use")
    assert [error["msg"] for error in result["errors"]] == [f"Cannot create port 'vm': {in_use().message}"]


def test_a_task_without_an_address_for_it_fails() -> None:
    services = SharedServices(PORTS)
    clouds = [SharedCloud(services, without_ports()) for _ in range(2)]
    ports = [one(name, address_choices=CHOICES[:1]) for name in ("red", "blue")]
    results = together(
        OPENSTACK_POD_NETWORK, clouds, *({"pod": each["name"], "config": {"ports": [each]}} for each in ports)
    )
    assert sorted(bool(result.get("failed")) for result in results) == [False, True]
    [message] = [result["msg"] for result in results if "msg" in result]
    assert "all of 10.5.0.10 are in use in network 'data'. Add" in message


def test_a_server_gets_the_next_address_when_another_client_takes_the_first() -> None:
    taken = {"ports": [port("other", B, "10.5.0.10", project_id="p2")]}
    made = {"ports": [port("vm-data", A, "10.5.0.11")]}
    empty: dict[str, Any] = {"ports": []}
    cloud = FakeCloud(
        {
            **NETWORKS,
            **NOVA,
            "GET /ports": [empty, empty, taken],  # two requests for each read
            "POST /ports": [in_use(), made],
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
