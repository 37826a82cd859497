# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan of bare-metal nodes: ownership, ports, provision states and errors of BMCs, with a fake Ironic."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal.plan import bmc_fault
from ansible_collections.openipu.pod.plugins.module_utils.openstack.bare_metal.task import OPENSTACK_POD_BARE_METAL
from ansible_collections.openipu.pod.plugins.module_utils.openstack.common.client import RejectedError
from ansible_collections.openipu.pod.plugins.module_utils.reconcile import UserError
from ansible_collections.openipu.pod.plugins.module_utils.runner import Run, TaskError

from tests.unit.collection.openstack.fake_cloud import FakeCloud

POD = "pod64"
MAC = "0c:42:a1:00:05:01"
LINK = {"switch_id": "44:4c:a8:00:00:01", "port_id": "Ethernet9/1", "switch_info": "tor1"}
DESIRED: dict[str, Any] = {
    "name": "ipum01",
    "properties": {"serial": "s1"},
    "bmc": {"address": "10.1.1.1", "username": "root", "password": "hidden"},
    "ports": [{"mac": MAC.upper(), "physical_network": "physnet100g", "local_link": LINK}],
    "state": "manageable",
}


def node(name: str = "ipum01", **changes: Any) -> dict[str, Any]:
    """Return a node of Ironic that equals the desired one."""
    interfaces = ("boot", "console", "deploy", "inspect", "management", "network", "power", "vendor")
    return {
        "uuid": f"u-{name}",
        "name": name,
        "extra": {"openipu.pod": POD},
        "driver": "redfish",
        "driver_info": {
            "redfish_address": "https://10.1.1.1",
            "redfish_username": "root",
            "redfish_password": "******",
        },
        "properties": {"serial": "s1", "cpus": 4},
        "traits": [],
        "resource_class": None,
        "description": None,
        "provision_state": "manageable",
        "power_state": "power on",
        "maintenance": False,
        "instance_uuid": None,
        "automated_clean": None,
        "disable_power_off": False,
        **{f"{interface}_interface": "default" for interface in interfaces},
        **changes,
    }


def port(owner: str = "u-ipum01", mac: str = MAC, **changes: Any) -> dict[str, Any]:
    return {
        "uuid": f"p-{mac}",
        "address": mac,
        "node_uuid": owner,
        "physical_network": "physnet100g",
        "pxe_enabled": True,
        "local_link_connection": LINK,
        "portgroup_uuid": None,
        **changes,
    }


def cloud(nodes: list[Any], ports: list[Any], **responses: Any) -> FakeCloud:
    fake = FakeCloud({"GET /nodes": {"nodes": nodes}, "GET /ports": {"ports": ports}, **responses})
    fake.microversion = (1, 99)
    return fake


def run(fake: FakeCloud, check_mode: bool = False, **options: Any) -> dict[str, Any]:
    options = {"pod": POD, "nodes": [DESIRED], **options}
    checked = ArgumentSpecValidator(OPENSTACK_POD_BARE_METAL.argument_spec).validate(options)
    assert not checked.error_messages
    run = Run(checked.validated_parameters, check_mode, False, fake)
    return {**OPENSTACK_POD_BARE_METAL.run(run), "warnings": run.warnings}


def test_equal_nodes_are_unchanged_and_other_properties_are_kept() -> None:
    fake = cloud([node()], [port()])
    result = run(fake)
    assert (result["changed"], fake.writes) == (False, [])
    assert result["nodes"]["unchanged"] == ["ipum01"]
    assert result["ports"]["unchanged"] == [MAC]


def test_a_new_node_is_created_with_its_ports_and_then_verified() -> None:
    fake = cloud(
        [],
        [],
        **{
            "POST /nodes": {"uuid": "u1"},
            "POST /ports": {"uuid": "p1"},
            "GET /nodes/u1": [
                {"provision_state": "verifying", "target_provision_state": "manageable", "last_error": None},
                {"provision_state": "manageable", "target_provision_state": None, "last_error": None},
            ],
        },
    )
    assert run(fake, check_mode=True)["nodes"]["created"] == ["ipum01"]
    assert fake.writes == []
    result = run(fake)
    assert result["ids"] == {"nodes": {"ipum01": "u1"}, "ports": {MAC: "p1"}}
    (_, created), (path, verified), (_, added) = fake.writes
    assert created["driver"] == "redfish"
    assert created["extra"] == {"openipu.pod": POD}
    assert created["driver_info"] == {
        "redfish_address": "https://10.1.1.1",
        "redfish_username": "root",
        "redfish_password": "hidden",
        "redfish_verify_ca": True,
    }
    assert added == {
        "address": MAC,
        "node_uuid": "u1",
        "physical_network": "physnet100g",
        "local_link_connection": LINK,
    }
    assert (path, verified) == ("PUT /nodes/u1/states/provision", {"target": "manage"})


def test_differences_are_patched_one_by_one() -> None:
    found = node(properties={"serial": "old"}, traits=["CUSTOM_OLD"], resource_class="other")
    fake = cloud([found], [port(physical_network=None), port(mac="0c:42:a1:00:05:99")])
    result = run(fake, nodes=[{**DESIRED, "resource_class": "ipu-machine", "traits": ["CUSTOM_IPU"]}])
    assert (result["nodes"]["updated"], result["ports"]["updated"]) == (["ipum01"], [MAC])
    assert result["ports"]["removed"] == ["0c:42:a1:00:05:99"]
    assert fake.writes == [
        ("DELETE /ports/p-0c:42:a1:00:05:99", None),
        (
            "PATCH /nodes/u-ipum01",
            [
                {"op": "add", "path": "/resource_class", "value": "ipu-machine"},
                {"op": "add", "path": "/properties/serial", "value": "s1"},
            ],
        ),
        ("PUT /nodes/u-ipum01/traits", {"traits": ["CUSTOM_IPU"]}),
        (f"PATCH /ports/p-{MAC}", [{"op": "add", "path": "/physical_network", "value": "physnet100g"}]),
    ]


def test_a_node_that_was_not_verified_gets_the_password_again() -> None:
    ready = {"provision_state": "manageable", "target_provision_state": None, "last_error": None}
    fake = cloud([node(provision_state="enroll")], [port()], **{"GET /nodes/u-ipum01": ready})
    assert run(fake)["nodes"]["updated"] == ["ipum01"]
    (_, patch), (_, verb) = fake.writes
    assert {"op": "add", "path": "/driver_info/redfish_password", "value": "hidden"} in patch
    assert verb == {"target": "manage"}


def test_passwords_are_written_on_request() -> None:
    fake = cloud([node()], [port()])
    assert run(fake, update_password="always")["nodes"]["updated"] == ["ipum01"]
    assert {each["path"] for each in fake.writes[0][1]} == {
        "/driver_info/redfish_address",
        "/driver_info/redfish_username",
        "/driver_info/redfish_password",
        "/driver_info/redfish_verify_ca",
    }


@pytest.mark.parametrize("state", ["active", "deploying", "cleaning", "wait call-back"])
def test_nodes_in_use_keep_their_state_and_are_not_removed(state: str) -> None:
    fake = cloud([node(provision_state=state)], [port()])
    assert not run(fake)["changed"]
    for options in ({"state": "absent"}, {"state": "absent", "nodes": None}, {"nodes": [], "prune": True}):
        with pytest.raises(UserError, match="Cannot remove node 'ipum01': it has an instance"):
            run(fake, **options)
    assert fake.writes == []


def test_an_available_node_returns_to_manageable_and_back() -> None:
    def states(*names: str) -> list[dict[str, Any]]:
        return [{"provision_state": name, "target_provision_state": None, "last_error": None} for name in names]

    fake = cloud([node(provision_state="available")], [port()], **{"GET /nodes/u-ipum01": states("manageable")})
    assert run(fake)["nodes"]["updated"] == ["ipum01"]
    assert fake.writes == [("PUT /nodes/u-ipum01/states/provision", {"target": "manage"})]
    fake = cloud([node()], [port()], **{"GET /nodes/u-ipum01": states("cleaning", "available")})
    assert run(fake, nodes=[{**DESIRED, "state": "available"}])["nodes"]["updated"] == ["ipum01"]
    assert fake.writes == [("PUT /nodes/u-ipum01/states/provision", {"target": "provide"})]
    fake = cloud([node()], [port()], **{"GET /nodes/u-ipum01": states("clean failed")})
    with pytest.raises(
        TaskError, match=r"it is in state clean failed instead of available: no cause reported by Ironic\."
    ):
        run(fake, nodes=[{**DESIRED, "state": "available"}])


@pytest.mark.parametrize(
    ("owner", "message"),
    [({}, "no task of this collection created it"), ({"openipu.pod": "b"}, "it belongs to 'b'")],
)
def test_nodes_of_others_are_rejected(owner: dict[str, str], message: str) -> None:
    fake = cloud([node(extra=owner)], [])
    for options in ({}, {"state": "absent"}):
        with pytest.raises(UserError, match=f"Cannot manage node 'ipum01': {message}. Choose another name, or assign"):
            run(fake, **options)
    # Without names, they are none of the nodes of the POD.
    assert not run(fake, state="absent", nodes=None)["changed"]
    assert not run(fake, prune=True, nodes=[])["changed"]


def test_a_port_moves_only_between_nodes_of_the_pod() -> None:
    own = node("ipum02")
    fake = cloud([node(), own], [port(owner="u-ipum02")], **{"POST /ports": {"uuid": "p2"}})
    assert run(fake)["ports"]["recreated"] == [MAC]
    assert [path for path, _ in fake.writes] == [f"DELETE /ports/p-{MAC}", "POST /ports"]
    fake = cloud([node(), {**own, "extra": {}}], [port(owner="u-ipum02")])
    with pytest.raises(UserError, match=f"Cannot register MAC {MAC} for node 'ipum01': node 'ipum02' has it"):
        run(fake)
    assert fake.writes == []


def test_members_of_port_groups_stay() -> None:
    """The site creates the port group of a bond, and the port of its second member."""
    member = port(mac="0c:42:a1:00:05:99", portgroup_uuid="g1")
    fake = cloud([node()], [port(portgroup_uuid="g1"), member, port(mac="0c:42:a1:00:05:98")])
    result = run(fake)
    assert (result["ports"]["unchanged"], result["ports"]["removed"]) == ([MAC], ["0c:42:a1:00:05:98"])
    assert [key for key, _body in fake.writes] == ["DELETE /ports/p-0c:42:a1:00:05:98"]
    assert result["kept_ports"] == [{"mac": "0c:42:a1:00:05:99", "node": "ipum01", "group": "g1"}]
    assert result["warnings"] == []


@pytest.mark.parametrize("check_mode", [False, True])
def test_members_of_an_exchanged_rnic_are_reported(check_mode: bool) -> None:
    """The group of an exchanged RNIC has no desired port. The new port is outside of it."""
    old = "0c:42:a1:00:05:99"
    other = node("ipum02")
    # The members of a node whose ports the task does not manage have no message.
    ports = [port(), port(mac=old, portgroup_uuid="g1"), port("u-ipum02", "0c:42:a1:00:05:97", portgroup_uuid="g2")]
    result = run(cloud([node(), other], ports), check_mode=check_mode)
    assert result["kept_ports"] == [{"mac": old, "node": "ipum01", "group": "g1"}]
    (warning,) = result["warnings"]
    assert warning.startswith(f"Port '{old}' of node 'ipum01' stays, because it is in port group g1.")
    assert f"openstack baremetal port delete p-{old}. " in warning
    assert warning.endswith("openstack baremetal port set PORT --pxe-disabled --port-group g1.")


@pytest.mark.parametrize("check_mode", [False, True])
def test_a_member_that_moves_to_another_node_is_reported(check_mode: bool) -> None:
    found = [port(owner="u-ipum02", portgroup_uuid="g2")]
    fake = cloud([node(), node("ipum02")], found, **{"POST /ports": {"uuid": "p2"}})
    result = run(fake, check_mode=check_mode)
    assert result["ports"]["recreated"] == [MAC]
    (warning,) = result["warnings"]
    assert warning.startswith(f"Port '{MAC}' moves from node 'ipum02' to node 'ipum01', and leaves port group g2.")


def test_ports_stay_when_they_are_not_listed() -> None:
    fake = cloud([node()], [port()])
    result = run(fake, nodes=[{name: value for name, value in DESIRED.items() if name != "ports"}])
    assert not result["changed"]
    assert result["ports"] == {"created": [], "updated": [], "recreated": [], "removed": [], "unchanged": []}


def test_all_pages_are_read() -> None:
    pages = [
        {"nodes": [node("ipum07", extra={})], "next": "http://ironic/v1/nodes?marker=u-ipum07"},
        {"nodes": [node()]},
    ]
    fake = cloud([], [port()], **{"GET /nodes": pages})
    assert not run(fake, check_mode=True)["changed"]
    assert [query.get("marker") for path, query in fake.reads if path == "GET /nodes"] == [None, "u-ipum07"]


def test_a_locked_node_is_tried_again() -> None:
    locked = RejectedError("Ironic returned an error: Node u-ipum01 is locked by host c1.", 409)
    fake = cloud([node(resource_class="other")], [port()], **{"PATCH /nodes/u-ipum01": [locked, {}]})
    assert run(fake, nodes=[{**DESIRED, "resource_class": "ipu-machine"}])["nodes"]["updated"] == ["ipum01"]
    assert len(fake.writes) == 2


def test_an_ironic_without_protection_is_rejected() -> None:
    fake = cloud([], [])
    fake.microversion = (1, 90)
    with pytest.raises(UserError, match=r"of node 'ipum01': Ironic supports it since .* Upgrade Ironic to 28\.0"):
        run(fake, nodes=[{**DESIRED, "disable_power_off": True}])
    assert run(fake, check_mode=True)["nodes"]["created"] == ["ipum01"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("HTTP GET … returned code 401. Base.1.0: x", "the BMC rejects user name or password."),
        (
            "(Caused by SSLError(… CERTIFICATE_VERIFY_FAILED] certificate verify failed",
            "its certificate is not trusted.",
        ),
        ("Unable to connect to https://h/redfish/v1/", "it does not respond."),
        ("HTTP GET … returned code 404", "it has no such system."),
        ("Something\n else.", "Something else. Correct the settings in bmc."),
        (None, "no cause reported by Ironic. Correct"),
    ],
)
def test_errors_of_bmcs_have_a_cause_and_a_remedy(error: str | None, expected: str) -> None:
    text = bmc_fault({"last_error": error, "driver_info": {"redfish_address": "https://h"}})
    assert text.startswith(f"Ironic cannot use its BMC at https://h: {expected}")
    assert text.endswith("Then run the task again.")


def test_a_ca_file_without_verification_is_rejected() -> None:
    bmc = {"address": "10.1.1.1", "ca_path": "/etc/ca.pem", "validate_certs": False}
    with pytest.raises(UserError, match="Cannot use ca_path for node 'ipum01': validate_certs is false"):
        run(cloud([], []), nodes=[{**DESIRED, "bmc": bmc}])


@pytest.mark.parametrize("setting", [{"validate_certs": False}, {"ca_path": "/etc/ca.pem"}], ids=str)
def test_the_default_verification_returns_when_its_setting_is_removed(setting: dict[str, Any]) -> None:
    bmc = {**DESIRED["bmc"], **setting}
    value = setting.get("ca_path", False)
    fake = cloud([node()], [port()])
    assert run(fake, nodes=[{**DESIRED, "bmc": bmc}])["nodes"]["updated"] == ["ipum01"]
    written = {"op": "add", "path": "/driver_info/redfish_verify_ca", "value": value}
    assert written in fake.writes[0][1]
    stored = node(driver_info={**node()["driver_info"], "redfish_verify_ca": value})
    fake = cloud([stored], [port()])
    assert not run(fake, nodes=[{**DESIRED, "bmc": bmc}])["changed"]
    assert run(fake)["nodes"]["updated"] == ["ipum01"]
    assert {**written, "value": True} in fake.writes[0][1]
    # A task without settings of the BMC keeps it.
    fake = cloud([stored], [port()])
    assert not run(fake, nodes=[{name: value for name, value in DESIRED.items() if name != "bmc"}])["changed"]


MAINTENANCE = "/nodes/u-ipum01/maintenance"


@pytest.mark.parametrize(
    ("found", "desired"),
    [("available", "available"), ("active", "available"), ("active", "manageable")],
)
def test_ports_of_nodes_for_deployments_change_in_maintenance(found: str, desired: str) -> None:
    ports = [port(physical_network="old"), port(mac="0c:42:a1:00:05:02", physical_network="old")]
    item = {**DESIRED, "state": desired}
    item["ports"] = [{"mac": each["address"], "physical_network": "physnet100g"} for each in ports]
    fake = cloud([node(provision_state=found)], ports)
    assert run(fake, nodes=[item])["ports"]["updated"] == [each["address"] for each in ports]
    # One port after the other: the end of the maintenance for one would reject the change of the other.
    change = [f"PUT {MAINTENANCE}", "PATCH", f"DELETE {MAINTENANCE}"]
    paths = [path.partition(" /ports/")[0] for path, _ in fake.writes]
    assert paths == change * 2
    assert "openipu.pod" in fake.writes[0][1]["reason"]


def test_the_maintenance_of_others_stays() -> None:
    fake = cloud([node(provision_state="available", maintenance=True)], [port(physical_network="old")])
    run(fake, nodes=[{**DESIRED, "state": "available"}])
    assert [path for path, _ in fake.writes] == [f"PATCH /ports/p-{MAC}"]


def test_the_maintenance_ends_after_an_error() -> None:
    rejected = RejectedError("no such network", 400)
    fake = cloud(
        [node(provision_state="available")], [port(physical_network="old")], **{f"PATCH /ports/p-{MAC}": rejected}
    )
    with pytest.raises(TaskError, match=f"Cannot change port '{MAC}': no such network"):
        run(fake, nodes=[{**DESIRED, "state": "available"}])
    assert fake.writes[-1][0] == f"DELETE {MAINTENANCE}"


def test_a_maintenance_that_cannot_end_is_reported() -> None:
    fake = cloud(
        [node(provision_state="available")],
        [port(physical_network="old")],
        **{f"DELETE {MAINTENANCE}": RejectedError("not now", 400)},
    )
    with pytest.raises(TaskError, match="node 'ipum01' stays in maintenance: not now"):
        run(fake, nodes=[{**DESIRED, "state": "available"}])
