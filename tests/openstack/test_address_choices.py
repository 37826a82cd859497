# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that another client takes in a real Neutron after a task has chosen them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import Cloud
from openstack.connection import Connection

from tests.openstack.neutron_pod import AccessLog, Plan, run

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]

CHOICES = [f"10.1.5.{number}" for number in range(140, 145)]
NAMES = ["one", "two", "three", "four", "five"]


@pytest.fixture
def network(admin: Connection, plan: Plan) -> Iterator[Any]:
    """Network of the POD without ports. Its ports are removed afterwards."""
    config = plan.options()["config"]
    assert not run(pod=plan.name, config={kind: config[kind] for kind in ("networks", "subnets")}).get("failed")
    found = plan.network(admin, "data")
    yield found
    for port in admin.network.ports(network_id=found.id):
        if not port.device_owner:
            admin.network.delete_port(port)


def create(plan: Plan, network: Any, name: str, **more: Any) -> dict[str, Any]:
    """Run a task that creates a port with one of the addresses."""
    port = {"name": f"{plan.name}-{name}", "network": network.name, "address_choices": CHOICES, **more}
    return run(pod=plan.name, config={"ports": [port]})


def addresses(admin: Connection, network: Any) -> dict[str, str]:
    """Return the addresses of the ports by name."""
    ports = [port for port in admin.network.ports(network_id=network.id) if not port.device_owner]
    return {port.name: port.fixed_ips[0]["ip_address"] for port in ports}


def test_another_client_takes_the_chosen_address(
    admin: Connection, plan: Plan, network: Any, log: AccessLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = admin.identity.find_project("tenant-a", ignore_missing=False)
    request, taken = Cloud.request, []

    def take_first(self: Cloud, service: str, method: str, path: str, **options: Any) -> Any:
        if (method, path) == ("POST", "/ports") and not taken:
            body = {"name": "other", "network_id": network.id, "fixed_ips": [{"ip_address": CHOICES[0]}]}
            taken.append(admin.network.create_port(**body, project_id=tenant.id))
        return request(self, service, method, path, **options)

    monkeypatch.setattr(Cloud, "request", take_first)
    with log.requests() as sent:
        result = create(plan, network, "one")
    assert taken
    assert result["ports"]["created"] == [f"{plan.name}-one"], result
    assert [line.split()[0] for line in sent if line.startswith("POST /v2.0/ports")] == ["POST"] * 3
    assert addresses(admin, network) == {"other": CHOICES[0], f"{plan.name}-one": CHOICES[1]}
    with log.no_writes():
        assert not create(plan, network, "one")["changed"]
    # No address is left for a second port.
    full = create(plan, network, "two", address_choices=CHOICES[:2])
    assert full["msg"] == (
        f"Cannot choose an address for port '{plan.name}-two': all of 10.1.5.140, 10.1.5.141 are in use in "
        f"network '{network.name}'. Add an address, or remove such a port."
    )


def test_tasks_at_the_same_time_get_different_addresses(admin: Connection, plan: Plan, network: Any) -> None:
    with ThreadPoolExecutor(len(NAMES)) as pool:
        results = list(pool.map(lambda name: create(plan, network, name), NAMES))
    assert [result.get("msg") for result in results] == [None] * len(NAMES)
    assert sorted(addresses(admin, network).values()) == CHOICES
