# SPDX-License-Identifier: GPL-3.0-or-later
"""Two tenants with vPODs on one secure controller: each has its servers, its user and its partition only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openstack.connection import Connection as Cloud

from tests.integration.cli.cli_support import Cli
from tests.openstack.neutron_pod import Plan, run
from tests.openstack.secure_controller import ADMINISTRATOR, take_over, use_as_administrator
from tests.openstack.vpod_order import inventory_vars, servers

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


@pytest.fixture
def team(admin: Cloud, plan: Plan) -> Iterator[Any]:
    """Project with its own data network and machines."""
    created = admin.identity.create_project(name=f"{plan.name}-team")
    yield created
    admin.identity.delete_project(created)


def test_two_tenants_share_a_secure_controller(
    admin: Cloud,
    plan: Plan,
    order: dict[str, Any],
    play: Callable[..., Any],
    secure_cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
    team: Any,
) -> None:
    use_as_administrator(secure_cli, monkeypatch)
    play("vipu_objects.yml")
    take_over(secure_cli)
    plan.tenants = [{"project": team.name, "vlan": plan.vlan + 4, "allocation": "upper"}]
    assert not run(prune=True, **plan.options()).get("failed")
    secure_cli.out(f"{ADMINISTRATOR} create allocation upper --cluster cl0 --size 2")
    folder, name = secure_cli.home / "users", order["vpod_name"]
    order.update(inventory_vars(plan), vipu_users_folder=str(folder), vpod_ipus=8)
    first = {"vpod_name": f"{name}1", "vpod_tenant": team.name, "vpod_user": "alice"}
    second = {"vpod_name": f"{name}2", "vpod_tenant": "tenant-a", "vpod_user": "bob"}
    try:
        for each in (first, second):
            play("vpod_create.yml", **each)
        found = servers(admin, order)
        assert {server: details.status for server, details in found.items()} == dict.fromkeys(
            [f"{name}{number}-{kind}" for number in (1, 2) for kind in ("poplar", "controller")], "ACTIVE"
        )
        # The controller VMs belong to the provider.
        other, provider = admin.identity.find_project("tenant-a").id, admin.current_project_id
        assert {server: details.project_id for server, details in found.items()} == {
            f"{name}1-poplar": team.id,
            f"{name}2-poplar": other,
            f"{name}1-controller": provider,
            f"{name}2-controller": provider,
        }
        networks = {net.id: net.name.removeprefix(f"{plan.name}-") for net in admin.network.networks()}
        control = {port: networks[details.network_id] for port, details in plan.ports(admin).items()}
        assert control[f"{name}1-controller-control"] == f"control-{team.name}"
        assert control[f"{name}2-controller-control"] == "control"
        users = Cli(secure_cli.home)
        for user, partition in (("alice", f"{name}1"), ("bob", f"{name}2")):
            listed = users.json(f"vipu --config {folder}/{user}.vipu-cli.hcl list partitions")
            assert [each["id"] for each in listed] == [partition]
        # A tenant makes its own partitions in its allocation, and the other one cannot.
        bob, alice = (f"vipu --config {folder}/{user}.vipu-cli.hcl" for user in ("bob", "alice"))
        users.out(f"{bob} remove partition {name}2")
        users.failed(f"{alice} create partition stolen --allocation {name}2 --size 4")
        users.out(f"{bob} create partition own --allocation {name}2 --size 4")
        assert [each["id"] for each in users.json(f"{bob} list partitions")] == ["own"]
        users.out(f"{bob} remove partition own")
    finally:
        for each in (first, second):
            play("vpod_destroy.yml", **each)
    assert servers(admin, order) == {}
    assert secure_cli.json(f"{ADMINISTRATOR} list partitions") == []
    secure_cli.out(f"{ADMINISTRATOR} remove allocation upper")
