# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of a real Neutron: one message each, and the next run completes the work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from openstack.connection import Connection

from tests.openstack.failing_proxy import failing_proxy
from tests.openstack.neutron_pod import AccessLog, Plan, result_keys, run

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # about future releases of the SDK
]


def failure_message(log: AccessLog, **options: Any) -> str:
    """Return the message of a task that fails and writes nothing."""
    with log.requests() as requests:
        result = run(**options)
    assert result["failed"]
    assert not result["changed"]
    assert not [line for line in requests if not line.startswith("GET ")]
    assert len(re.findall(r"[.:!?] [A-Z]", result["msg"])) <= 2, result["msg"]
    return str(result["msg"])


def auth(cloud: Path, **overrides: str) -> dict[str, str]:
    return {**yaml.safe_load((cloud / "clouds.yaml").read_text())["clouds"]["openipu"]["auth"], **overrides}


def test_unreachable_cloud_and_wrong_credentials(
    cloud: Path, admin: Connection, plan: Plan, log: AccessLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = plan.options()
    unknown = "Cannot find the connection settings of the cloud: "
    assert failure_message(log, cloud="nowhere", **options).startswith(unknown)
    monkeypatch.delenv("OS_CLOUD")
    unreachable = auth(cloud, auth_url="http://127.6.0.1:1/v3")
    assert "Cannot connect to Keystone: " in failure_message(log, auth=unreachable, **options)
    wrong = auth(cloud, password="wrong")
    assert "Correct the credentials, or request a new token." in failure_message(log, auth=wrong, **options)


def test_an_expired_token_is_rejected(
    cloud: Path, admin: Connection, plan: Plan, log: AccessLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = type(admin)(cloud="openipu").session
    token = session.get_token()
    admin.identity.delete("/auth/tokens", headers={"X-Subject-Token": token})
    monkeypatch.delenv("OS_CLOUD")
    credentials = auth(cloud)
    scope = {name: credentials[name] for name in ("auth_url", "project_name", "project_domain_id")}
    message = failure_message(log, auth_type="token", auth={**scope, "token": token}, **plan.options())
    assert "request a new token" in message


def test_checks_before_any_write(
    admin: Connection, plan: Plan, log: AccessLog, connect: Callable[[str], Connection]
) -> None:
    options = plan.options()
    config = options["config"]
    # More ports than the quota of the project.
    quota = admin.network.get_quota(admin.current_project_id, details=True).ports["limit"]
    ports = [{"name": f"p{n}", "network": f"{plan.name}-storage"} for n in range(quota + 1)]
    message = failure_message(log, pod=plan.name, config={**config, "ports": ports})
    assert f"the quota of the project is {quota}, and" in message
    assert "openstack quota set --ports" in message
    # A VLAN of another network.
    other = admin.network.create_network(
        name=f"other-{plan.name}",
        provider_network_type="vlan",
        provider_physical_network="physnet100g",
        provider_segmentation_id=plan.vlan + 2,
    )
    try:
        message = failure_message(log, **options)
    finally:
        admin.network.delete_network(other)
    assert message == (
        f"Cannot create network '{plan.name}-data': VLAN {plan.vlan + 2} of physnet100g belongs to network "
        f"'other-{plan.name}'. Set another VLAN."
    )
    # A project that does not exist.
    unknown_project = {**config, "shares": [{"kind": "network", "name": f"{plan.name}-data", "project": "missing"}]}
    predicted = run(check=True, pod=plan.name, config=unknown_project)
    assert predicted["warnings"] == ["Cannot find project 'missing'. The task fails unless an earlier task creates it."]
    # A port of another project.
    assert not run(**options).get("failed")
    network = plan.network(admin, "data")
    port = plan.ports(admin)["ipum01-rnic"]
    admin.network.delete_port(port)
    tenant_port = connect("tenant-a").network.create_port(network_id=network.id, name="mine")
    admin.network.update_port(tenant_port, mac_address=port.mac_address)
    try:
        message = failure_message(log, **options)
        assert message == (
            f"Cannot use MAC {port.mac_address} for port 'ipum01-rnic': it belongs to port 'mine' on network "
            f"'{network.name}'. Set another MAC, or free this one first."
        )
    finally:
        admin.network.delete_port(tenant_port)
    # A subnet that overlaps.
    overlapping = {"name": f"{plan.name}-wide", "network": network.name, "cidr": "10.1.0.0/16"}
    message = failure_message(log, pod=plan.name, config={"subnets": [overlapping]})
    assert f"it overlaps subnet '{plan.name}-data' (10.1.5.0/24) of network '{network.name}'." in message


def test_a_rejected_object_does_not_block_others(admin: Connection, plan: Plan) -> None:
    options = plan.options()
    networks = {net["name"]: net for net in options["config"]["networks"]}
    networks[f"{plan.name}-storage"]["mtu"] = 60000
    result = run(**options)
    assert result["failed"]
    assert result["changed"]
    assert result["msg"].startswith(f"Cannot create network '{plan.name}-storage': Neutron returned an error: ")
    errors = {(error["kind"], error["id"]): error["msg"] for error in result["errors"]}
    assert errors[("subnet", f"{plan.name}-storage")] == (
        f"Cannot create subnet '{plan.name}-storage': network '{plan.name}-storage' does not exist. "
        "See the other errors, or create it first."
    )
    assert set(errors) == {
        ("network", f"{plan.name}-storage"),
        ("subnet", f"{plan.name}-storage"),
        ("share", f"network/{plan.name}-storage/tenant-a"),
    }
    assert len(plan.ports(admin)) == 12
    second = run(**plan.options())
    assert not second.get("failed"), second
    created = [key for verbs in result_keys(second).values() for key in verbs.get("created", [])]
    assert sorted(created) == [f"network/{plan.name}-storage/tenant-a", f"{plan.name}-storage", f"{plan.name}-storage"]


@pytest.fixture
def failing_neutron(
    cloud: Path, admin: Connection, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractContextManager[None]]:
    """Return a context in which requests to Neutron go through a proxy that fails."""

    @contextmanager
    def failing_neutron(**faults: Any) -> Iterator[None]:
        clouds = yaml.safe_load((cloud / "clouds.yaml").read_text())
        clouds_file = plan.folder / "clouds.yaml"
        with failing_proxy(admin.network.get_endpoint(), **faults) as url, monkeypatch.context() as environment:
            clouds["clouds"]["openipu"]["network_endpoint_override"] = url
            clouds_file.write_text(yaml.safe_dump(clouds))
            environment.setenv("OS_CLIENT_CONFIG_FILE", str(clouds_file))
            yield

    return failing_neutron


@pytest.mark.parametrize(
    ("writes", "response_lost"), [(0, False), (3, False), (14, False), (32, False), (0, True), (2, True), (26, True)]
)
def test_neutron_is_killed_during_a_run(
    admin: Connection, plan: Plan, log: AccessLog, failing_neutron: Any, writes: int, response_lost: bool
) -> None:
    options = plan.options()
    with failing_neutron(writes=writes, response_lost=response_lost):
        result = run(**options)
    assert result["failed"]
    assert result["changed"] == (writes > 0)
    assert result["msg"].startswith("Cannot connect to Neutron: ")
    assert result["msg"].count("Cannot connect to Neutron") == 1
    second = run(**options)
    assert not second.get("failed"), second
    assert second["changed"]
    with log.no_writes():
        assert not run(**options)["changed"]
    assert len(plan.ports(admin)) == 12


def test_the_next_run_completes_an_interface_with_an_address(
    admin: Connection, plan: Plan, log: AccessLog, failing_neutron: Any
) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    interfaces = options["config"]["routers"][0]["interfaces"]
    network = plan.network(admin, "bmc-gw")
    before = {port.id for port in admin.network.ports(network_id=network.id)}
    interface = {"subnet": f"{plan.name}-bmc", "address": "10.1.1.253"}
    for failing_path, response_lost in (
        ("/ports", True),  # its port was created, but the response was lost
        ("/tags", False),
        ("/add_router_interface", False),
        ("/add_router_interface", True),
    ):
        interfaces.append(interface)
        with failing_neutron(writes=0, failing_path=failing_path, response_lost=response_lost):
            assert run(**options)["failed"]
        second = run(**options)
        assert not second.get("failed"), (failing_path, second)
        (created,) = [port for port in admin.network.ports(network_id=network.id) if port.id not in before]
        assert (created.device_owner, created.fixed_ips[0]["ip_address"]) == (
            "network:router_interface",
            interface["address"],
        )
        assert created.tags == [f"openipu.pod={plan.name}"]
        with log.no_writes():
            assert not run(**options)["changed"]
        interfaces.remove(interface)
        assert run(**options)["router_interfaces"]["removed"] == [f"{plan.name}/{plan.name}-bmc"]
        assert {port.id for port in admin.network.ports(network_id=network.id)} == before


@pytest.mark.parametrize("missing_extension", ["", "/extensions/tag-ports-during-bulk-creation"])
def test_ports_are_tagged_with_and_without_the_extension_driver(
    admin: Connection, plan: Plan, log: AccessLog, failing_neutron: Any, missing_extension: str
) -> None:
    with failing_neutron(missing_path=missing_extension), log.requests() as requests:
        assert not run(**plan.options()).get("failed")
    ports = plan.ports(admin).values()
    assert [port.tags for port in ports] == [[f"openipu.pod={plan.name}"]] * 12
    tagged = [line for line in requests if re.match(r"PUT /v2.0/ports/[^/]+/tags", line)]
    assert len(tagged) == (12 if missing_extension else 0)


def test_a_port_of_a_tenant_blocks_all_removals(
    admin: Connection, plan: Plan, log: AccessLog, connect: Callable[[str], Connection]
) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    network = plan.network(admin, "data")
    before = plan.ports(admin)
    tenant_port = connect("tenant-a").network.create_port(network_id=network.id, name="vm")
    try:
        assert failure_message(log, pod=plan.name, state="absent") == (
            f"Cannot remove network '{network.name}': port 'vm' of project '{tenant_port.project_id}' uses it. Remove "
            "that one first, or keep the network."
        )
        # Neutron itself rejects the removal of its share.
        remaining = [share for share in options["config"]["shares"] if share["name"] != network.name]
        result = run(pod=plan.name, config={"shares": remaining}, prune=["shares"])
        assert result["failed"]
        assert not result["changed"]
    finally:
        admin.network.delete_port(tenant_port)
    assert {port.id for port in plan.ports(admin).values()} == {port.id for port in before.values()}
