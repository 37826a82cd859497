# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of an EOS switch, tested with pyeapi over verified TLS."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any

import pytest
from pyeapi.eapilib import CommandError

from tests.integration.eos_switches import ADDRESS, PASSWORD, USER, Cables, Rack, ServedSwitch
from tests.integration.twin_eos.eapi_support import CABLES, show, show_text


def test_model_version_and_name(switch: ServedSwitch) -> None:
    node = switch.node()
    version = show(node, "show version")
    assert (version["modelName"], version["version"]) == ("DCS-7060CX-32S-F", "4.28.3M")
    assert version["serialNumber"] in show_text(node, "show version")
    assert show(node, "show hostname") == {"hostname": "tor1", "fqdn": "tor1"}
    assert node.model == "7060"  # as pyeapi reads it


def test_ports_vlans_and_neighbours(switch: ServedSwitch) -> None:
    node = switch.node()
    node.config(
        [
            "vlan 11",
            "name data",
            "interface Ethernet1/1",
            "switchport access vlan 11",
            "description b-ipum1 eth1",
            "interface Ethernet2/1",
            "channel-group 1 mode active",
            "interface Port-Channel1",
            "switchport mode trunk",
            "switchport trunk native vlan 11",
            "interface Ethernet4/1",
            "shutdown",
        ]
    )
    ports = show(node, "show interfaces status")["interfaceStatuses"]
    assert {
        name: ports[name]["linkStatus"] for name in ("Ethernet1/1", "Ethernet3/1", "Ethernet4/1", "Port-Channel1")
    } == {
        "Ethernet1/1": "connected",
        "Ethernet3/1": "notconnect",
        "Ethernet4/1": "disabled",
        "Port-Channel1": "connected",
    }
    assert ports["Ethernet2/1"]["vlanInformation"]["vlanExplanation"] == "in Po1"
    assert ports["Ethernet1/1"]["vlanInformation"]["vlanId"] == 11
    rows = show_text(node, "show interfaces status").splitlines()
    assert rows[2].split()[:7] == ["Et1/1", "b-ipum1", "eth1", "connected", "11", "full", "100G"]
    vlan = show(node, "show vlan 11")["vlans"]["11"]
    assert (vlan["name"], sorted(vlan["interfaces"])) == ("data", ["Ethernet1/1", "Port-Channel1"])
    assert [(row["port"], row["neighborDevice"]) for row in show(node, "show lldp neighbors")["lldpNeighbors"]] == [
        ("Ethernet1/1", "b-ipum1"),
        ("Ethernet2/1", "poplar1"),
    ]
    learned = show(node, "show mac address-table")["unicastTable"]["tableEntries"]
    assert [(row["vlanId"], row["macAddress"], row["interface"]) for row in learned] == [
        (11, "00:11:22:33:44:55", "Ethernet1/1"),
        (11, "00:11:22:33:44:77", "Port-Channel1"),
    ]
    assert list(show(node, "show port-channel")["portChannels"]["Port-Channel1"]["activePorts"]) == ["Ethernet2/1"]
    assert show(node, "show interfaces trunk")["trunks"]["Port-Channel1"]["nativeVlan"] == 11


def test_moved_cables(rack: Rack) -> None:
    cables = Cables(CABLES)
    node = rack.switch(cabling=cables).node()
    cables.ports["Ethernet5/1"] = cables.ports.pop("Ethernet1/1")
    found = [row["port"] for row in show(node, "show lldp neighbors")["lldpNeighbors"]]
    assert found == ["Ethernet2/1", "Ethernet5/1"]
    node.config(["interface Ethernet5/1", "no lldp receive"])
    assert [row["port"] for row in show(node, "show lldp neighbors")["lldpNeighbors"]] == ["Ethernet2/1"]
    node.config(["no lldp run"])
    with pytest.raises(CommandError):
        show(node, "show lldp neighbors")


def test_configuration_with_the_api_of_pyeapi(switch: ServedSwitch) -> None:
    node = switch.node()
    vlans, ports, channels = node.api("vlans"), node.api("switchports"), node.api("interfaces")
    assert vlans.create(20) and vlans.set_name(20, "storage")
    assert vlans.get(20)["name"] == "storage"
    assert ports.set_mode("Ethernet6/1", "trunk")
    assert ports.set_trunk_allowed_vlans("Ethernet6/1", "20")
    assert ports.get("Ethernet6/1")["trunk_allowed_vlans"] == "20"
    assert channels.set_members("Port-Channel5", ["Ethernet7/1", "Ethernet8/1"], mode="active")
    assert sorted(channels.get("Port-Channel5")["members"]) == ["Ethernet7/1", "Ethernet8/1"]
    assert channels.set_description("Ethernet6/1", "a host")
    assert channels.set_shutdown("Ethernet6/1", disable=False)
    assert channels.get("Ethernet6/1")["shutdown"]
    assert vlans.delete(20) and vlans.get(20) is None
    assert "storage" not in "\n".join(switch.config())


def test_objects_of_the_api_of_pyeapi(switch: ServedSwitch) -> None:
    """Classes that read only, and classes that also change a switch."""
    node = switch.node()
    empty = [node.api("bgp").get(), node.api("ospf").get(), node.api("routemaps").getall(), node.api("vrrp").getall()]
    assert not any(empty) and node.api("varp").get() == {"mac_address": None, "interfaces": {}}
    routes, users, stp, system = (node.api(name) for name in ("staticroute", "users", "stp", "system"))
    assert routes.create("10.8.0.0/16", "10.1.3.1", distance=5, route_name="x")
    assert routes.get("10.8.0.0/16") == {"10.1.3.1": {None: {5: {"tag": 0, "route_name": "x"}}}}
    assert routes.delete("10.8.0.0/16", "10.1.3.1", distance=5, route_name="x") and not routes.getall()
    assert users.create("kim", nopassword=True) and users.set_role("kim", "network-admin")
    assert users.set_sshkey("kim", "ssh-rsa AAAA kim@pod")
    assert (users.get("kim")["role"], users.get("kim")["ssh-key"]) == ("network-admin", "ssh-rsa AAAA kim@pod")
    assert stp.interfaces.set_portfast("Ethernet6/1", True) and stp.interfaces.get("Ethernet6/1")["portfast"]
    assert system.set_banner("motd", "Maintenance") and system.get()["banner_motd"] == "Maintenance"
    assert node.api("ntp").add_server("10.1.3.9", prefer=True)
    assert node.api("ntp").get()["servers"] == [{"10.1.3.9": "prefer"}]
    assert node.api("vrfs").create("blue") and node.api("vrfs").set_description("blue", "data")
    assert node.api("vrfs").get("blue")["description"] == "data"
    assert node.api("acl").getall() == {"standard": {}, "extended": {}}
    assert node.api("ipinterfaces").get("Management1")["address"] == ADDRESS
    assert not node.api("interfaces").create("Vxlan1")


def test_a_configuration_session_of_pyeapi(switch: ServedSwitch) -> None:
    node = switch.node()
    before = switch.config()
    node.configure_session()
    node.config(["vlan 30", "interface Ethernet9/1", "switchport access vlan 30"])
    assert switch.config() == before
    assert node.diff().splitlines()[0] == "--- system:/running-config"
    node.abort()
    assert (switch.config(), switch.sessions()) == (before, {})
    node.configure_session()
    node.config(["vlan 30"])
    node.commit()
    assert "vlan 30" in switch.config()


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("show nothing", 1002, "Invalid input (at token 1: 'nothing')"),
        ("show", 1002, "Incomplete command (at token 0: 'show')"),
        ("show vlan 999", 1000, "VLAN 999 not found in current VLAN database"),
        ("configure session no-such abort", 1000, "Session no-such does not exist"),
    ],
)
def test_rejected_commands(switch: ServedSwitch, command: str, code: int, words: str) -> None:
    node = switch.node()
    with pytest.raises(CommandError) as rejected:
        node.run_commands(["show hostname", command, "show version"])
    assert rejected.value.error_code == code
    # The output has the results of the commands before it; the commands after it did not run.
    enabled, hostname, last = rejected.value.output
    assert (enabled, hostname["hostname"]) == ({}, "tor1")
    assert words in last["errors"][0]
    assert f"CLI command 3 of 4 '{command}' failed" in str(rejected.value)


def test_commands_without_json_form(switch: ServedSwitch) -> None:
    with pytest.raises(CommandError) as rejected:
        show(switch.node(), "show session-config named x diffs")
    assert rejected.value.error_code == 1000
    with pytest.raises(CommandError) as rejected:
        switch.node().run_commands(["show logging"])
    assert rejected.value.error_code == 1003
    assert "format='text'" in str(rejected.value.output[-1]["errors"])


def raw(switch: ServedSwitch, body: bytes) -> dict[str, Any]:
    """Return the response to any body."""
    channel = http.client.HTTPConnection("127.0.0.1", switch.port, timeout=10)
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    channel.request("POST", "/command-api", body, {"Authorization": f"Basic {login}"})
    response = channel.getresponse()
    found: dict[str, Any] = json.loads(response.read())
    channel.close()
    return found


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "method": "other", "id": 7}', -32601),
        (b'{"jsonrpc": "2.0", "method": "runCmds", "id": 7, "params": {"version": 2, "cmds": []}}', -32602),
        (b'{"jsonrpc": "2.0", "method": "runCmds", "id": 7, "params": {"version": 1, "cmds": "x"}}', -32602),
        (b'{"jsonrpc": "2.0", "method": "runCmds", "id": 7, "params": {"version": 1, "cmds": [1]}}', -32602),
        (
            b'{"jsonrpc": "2.0", "method": "runCmds", "id": 7, "params": {"version": 1, "cmds": [], "format": "xml"}}',
            -32602,
        ),
        (b'{"jsonrpc": "2.0", "method": "runCmds", "id": 7, "params": {"version": 1, "cmds": [], "huh": 1}}', -32602),
    ],
)
def test_invalid_requests(rack: Rack, body: bytes, code: int) -> None:
    response = raw(rack.switch(secure=False), body)
    assert response["error"]["code"] == code
    assert response["id"] in {7, None}


def test_abbreviations_need_auto_complete(rack: Rack) -> None:
    switch = rack.switch(secure=False)

    def request(**more: Any) -> dict[str, Any]:
        params = {"version": 1, "cmds": ["sh host"], **more}
        return raw(switch, json.dumps({"jsonrpc": "2.0", "id": "a", "method": "runCmds", "params": params}).encode())

    assert request()["error"]["code"] == 1002
    assert request(autoComplete=True)["result"][0]["hostname"] == "tor1"
    assert "execDuration" in request(autoComplete=True, timestamps=True)["result"][0]["_meta"]


def test_a_persistent_connection(rack: Rack) -> None:
    switch = rack.switch(secure=False)
    channel = http.client.HTTPConnection("127.0.0.1", switch.port, timeout=10)
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "runCmds", "params": {"version": 1, "cmds": ["show hostname"]}}
    )
    ends = set()
    for _ in range(3):
        channel.request("POST", "/command-api", body, {"Authorization": f"Basic {login}"})
        assert channel.getresponse().read()
        ends.add(channel.sock.getsockname())
    channel.close()
    assert len(ends) == 1


@pytest.mark.parametrize(("path", "password", "status"), [("", PASSWORD, 200), ("", "x", 401), ("/x", PASSWORD, 404)])
def test_head_requests(rack: Rack, path: str, password: str, status: int) -> None:
    """Clients such as ANTA test with HEAD whether eAPI responds."""
    channel = http.client.HTTPConnection("127.0.0.1", rack.switch(secure=False).port, timeout=10)
    login = base64.b64encode(f"{USER}:{password}".encode()).decode()
    channel.request("HEAD", f"/command-api{path}", headers={"Authorization": f"Basic {login}"})
    response = channel.getresponse()
    channel.close()
    assert (response.status, response.read()) == (status, b"")
