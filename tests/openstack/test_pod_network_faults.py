# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong with a real Neutron: one sentence each, and running again does what was left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from cut_off import cut_off
from neutron_pod import AccessLog, Plan, done, run
from openstack.connection import Connection

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # of the SDK's releases to come
]


def refused(log: AccessLog, **options: Any) -> str:
    """The one sentence of a task that fails and writes nothing."""
    with log.requests() as requests:
        result = run(**options)
    assert result["failed"]
    assert not result["changed"]
    assert not [line for line in requests if not line.startswith("GET ")]
    assert len(re.findall(r"[.:!?] [A-Z]", result["msg"])) <= 2, result["msg"]
    return str(result["msg"])


def auth(cloud: Path, **more: str) -> dict[str, str]:
    return {**yaml.safe_load((cloud / "clouds.yaml").read_text())["clouds"]["openipu"]["auth"], **more}


def test_nobody_answers_or_lets_in(
    cloud: Path, admin: Connection, plan: Plan, log: AccessLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = plan.options()
    unknown = "It is not known how to reach the cloud: name one of clouds.yaml with cloud, or give auth ("
    assert refused(log, cloud="nowhere", **options).startswith(unknown)
    monkeypatch.delenv("OS_CLOUD")
    gone = auth(cloud, auth_url="http://127.6.0.1:1/v3")
    assert "Keystone does not answer: check auth_url" in refused(log, auth=gone, **options)
    wrong = auth(cloud, password="wrong")
    assert "Keystone does not let this user in: check the credentials" in refused(log, auth=wrong, **options)


def test_a_token_that_is_no_longer_good(
    cloud: Path, admin: Connection, plan: Plan, log: AccessLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = type(admin)(cloud="openipu").session
    token = session.get_token()
    admin.identity.delete("/auth/tokens", headers={"X-Subject-Token": token})
    monkeypatch.delenv("OS_CLOUD")
    known = auth(cloud)
    where = {name: known[name] for name in ("auth_url", "project_name", "project_domain_id")}
    sentence = refused(log, auth_type="token", auth={**where, "token": token}, **plan.options())
    assert "ask for a new token" in sentence


def test_what_can_be_seen_before_anything_is_written(
    admin: Connection, plan: Plan, log: AccessLog, connect: Callable[[str], Connection]
) -> None:
    options = plan.options()
    config = options["config"]
    # More ports than the project may have.
    quota = admin.network.get_quota(admin.current_project_id, details=True).ports["limit"]
    more = [{"name": f"p{n}", "network": f"{plan.name}-storage"} for n in range(quota + 1)]
    sentence = refused(log, pod=plan.name, config={**config, "ports": more})
    assert f"and the project may have {quota} and has" in sentence
    assert "openstack quota set --ports" in sentence
    # A VLAN that somebody else's network has.
    other = admin.network.create_network(
        name=f"other-{plan.name}",
        provider_network_type="vlan",
        provider_physical_network="physnet100g",
        provider_segmentation_id=plan.vlan + 2,
    )
    try:
        sentence = refused(log, **options)
    finally:
        admin.network.delete_network(other)
    assert sentence == (
        f"VLAN {plan.vlan + 2} of physnet100g is taken by network 'other-{plan.name}': "
        f"give network '{plan.name}-data' another one."
    )
    # A project that nobody made.
    lost = {**config, "shares": [{"kind": "network", "name": f"{plan.name}-data", "project": "nobody"}]}
    foretold = run(check=True, pod=plan.name, config=lost)
    assert foretold["warnings"] == [
        "Unless a task before this one makes what is missing: there is no project 'nobody'."
    ]
    # What others have on the networks.
    assert not run(**options).get("failed")
    network = plan.network(admin, "data")
    port = plan.ports(admin)["ipum01-rnic"]
    admin.network.delete_port(port)
    taken = connect("tenant-a").network.create_port(network_id=network.id, name="mine")
    admin.network.update_port(taken, mac_address=port.mac_address)
    try:
        sentence = refused(log, **options)
        assert sentence == (
            f"MAC {port.mac_address} of port 'ipum01-rnic' is that of port 'mine' on network '{network.name}': "
            "remove that one, or correct this one."
        )
    finally:
        admin.network.delete_port(taken)
    # A subnet that overlaps.
    wide = {"name": f"{plan.name}-wide", "network": network.name, "cidr": "10.1.0.0/16"}
    sentence = refused(log, pod=plan.name, config={"subnets": [wide]})
    assert f"would overlap subnet '{plan.name}-data' (10.1.5.0/24) of network '{network.name}'" in sentence


def test_one_that_is_refused_does_not_hold_up_the_others(admin: Connection, plan: Plan) -> None:
    options = plan.options()
    networks = {net["name"]: net for net in options["config"]["networks"]}
    networks[f"{plan.name}-storage"]["mtu"] = 60000
    result = run(**options)
    assert result["failed"]
    assert result["changed"]
    assert result["msg"].startswith(f"Cannot create network '{plan.name}-storage': Neutron says: ")
    errors = {(error["kind"], error["id"]): error["msg"] for error in result["errors"]}
    assert errors[("subnet", f"{plan.name}-storage")] == (
        f"Subnet '{plan.name}-storage' was not tried, since network '{plan.name}-storage' is not there."
    )
    assert set(errors) == {
        ("network", f"{plan.name}-storage"),
        ("subnet", f"{plan.name}-storage"),
        ("share", f"network/{plan.name}-storage/tenant-a"),
    }
    assert len(plan.ports(admin)) == 12
    again = run(**plan.options())
    assert not again.get("failed"), again
    created = [key for verbs in done(again).values() for key in verbs.get("created", [])]
    assert sorted(created) == [f"network/{plan.name}-storage/tenant-a", f"{plan.name}-storage", f"{plan.name}-storage"]


@pytest.fixture
def through(
    cloud: Path, admin: Connection, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., AbstractContextManager[None]]:
    """A block in which Neutron is asked by way of something that breaks."""

    @contextmanager
    def through(**how: Any) -> Iterator[None]:
        clouds = yaml.safe_load((cloud / "clouds.yaml").read_text())
        known = plan.folder / "clouds.yaml"
        with cut_off(admin.network.get_endpoint(), **how) as url, monkeypatch.context() as environment:
            clouds["clouds"]["openipu"]["network_endpoint_override"] = url
            known.write_text(yaml.safe_dump(clouds))
            environment.setenv("OS_CLIENT_CONFIG_FILE", str(known))
            yield

    return through


@pytest.mark.parametrize(
    ("writes", "answer_lost"), [(0, False), (3, False), (14, False), (32, False), (0, True), (2, True), (26, True)]
)
def test_neutron_is_killed_in_mid_plan(
    admin: Connection, plan: Plan, log: AccessLog, through: Any, writes: int, answer_lost: bool
) -> None:
    options = plan.options()
    with through(writes=writes, answer_lost=answer_lost):
        result = run(**options)
    assert result["failed"]
    assert result["changed"] == (writes > 0)
    assert result["msg"].startswith("Neutron does not answer: check auth_url and that the service runs, and run again")
    assert result["msg"].count("Neutron does not answer") == 1
    again = run(**options)
    assert not again.get("failed"), again
    assert again["changed"]
    with log.nothing_written():
        assert not run(**options)["changed"]
    assert len(plan.ports(admin)) == 12


def test_an_interface_with_an_address_is_finished_by_the_next_run(
    admin: Connection, plan: Plan, log: AccessLog, through: Any
) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    interfaces = options["config"]["routers"][0]["interfaces"]
    network = plan.network(admin, "bmc-gw")
    before = {port.id for port in admin.network.ports(network_id=network.id)}
    asked = {"subnet": f"{plan.name}-bmc", "address": "10.1.1.253"}
    for at, answer_lost in (
        ("/ports", True),  # its port is there, and nobody knows
        ("/tags", False),
        ("/add_router_interface", False),
        ("/add_router_interface", True),
    ):
        interfaces.append(asked)
        with through(writes=0, at=at, answer_lost=answer_lost):
            assert run(**options)["failed"]
        again = run(**options)
        assert not again.get("failed"), (at, again)
        (made,) = [port for port in admin.network.ports(network_id=network.id) if port.id not in before]
        assert (made.device_owner, made.fixed_ips[0]["ip_address"]) == ("network:router_interface", asked["address"])
        assert made.tags == [f"openipu.pod={plan.name}"]
        with log.nothing_written():
            assert not run(**options)["changed"]
        interfaces.remove(asked)
        assert run(**options)["router_interfaces"]["removed"] == [f"{plan.name}/{plan.name}-bmc"]
        assert {port.id for port in admin.network.ports(network_id=network.id)} == before


@pytest.mark.parametrize("lacks", ["", "/extensions/tag-ports-during-bulk-creation"])
def test_ports_get_their_tags_with_the_extension_driver_and_without(
    admin: Connection, plan: Plan, log: AccessLog, through: Any, lacks: str
) -> None:
    with through(lacks=lacks), log.requests() as requests:
        assert not run(**plan.options()).get("failed")
    ports = plan.ports(admin).values()
    assert [port.tags for port in ports] == [[f"openipu.pod={plan.name}"]] * 12
    tagged = [line for line in requests if re.match(r"PUT /v2.0/ports/[^/]+/tags", line)]
    assert len(tagged) == (12 if lacks else 0)


def test_what_a_tenant_has_a_port_on_stays_and_so_does_all_the_rest(
    admin: Connection, plan: Plan, log: AccessLog, connect: Callable[[str], Connection]
) -> None:
    options = plan.options()
    assert not run(**options).get("failed")
    network = plan.network(admin, "data")
    there = plan.ports(admin)
    taken = connect("tenant-a").network.create_port(network_id=network.id, name="vm")
    try:
        assert refused(log, pod=plan.name, state="absent") == (
            f"Network '{network.name}' cannot be removed while port 'vm' of project '{taken.project_id}' has it in "
            "use: remove that first, or keep the network."
        )
        # To its share alone Neutron says no.
        left = [share for share in options["config"]["shares"] if share["name"] != network.name]
        result = run(pod=plan.name, config={"shares": left}, prune=["shares"])
        assert result["failed"]
        assert not result["changed"]
    finally:
        admin.network.delete_port(taken)
    assert {port.id for port in plan.ports(admin).values()} == {port.id for port in there.values()}
