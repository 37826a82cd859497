# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of an EOS switch, tested with pyeapi over verified TLS."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyeapi
import pytest
from pyeapi.eapilib import CommandError, ConnectionError

from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.devices.eos import server
from openipu.vipu.tls import issue, load
from tests.integration.eos_switches import PASSWORD, USER, Cables, Rack, ServedSwitch, rack_of_switches
from tests.waiting import until

CABLES = {
    "Ethernet1/1": Neighbour("b-ipum1", "00:11:22:33:44:55", "eth1", (("00:11:22:33:44:55", None),)),
    "Ethernet2/1": Neighbour("poplar1", "00:11:22:33:44:77", "eno1", (("00:11:22:33:44:77", None),)),
    "Ethernet3/1": Neighbour("b-ipum2", "00:11:22:33:44:99", "eth1", up=False),
}


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with rack_of_switches(tmp_path) as rack:
        yield rack


@pytest.fixture
def switch(rack: Rack) -> ServedSwitch:
    return rack.switch(cabling=Cables(CABLES))


def show(node: Any, command: str) -> dict[str, Any]:
    """Return the JSON output of a command."""
    found: dict[str, Any] = node.enable(command)[0]["result"]
    return found


def show_text(node: Any, command: str) -> str:
    """Return the text output of a command."""
    return str(node.enable(command, encoding="text")[0]["result"]["output"])


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


def test_read_only_users_and_rejected_logins(rack: Rack) -> None:
    switch = rack.switch(operators=frozenset({"viewer"}))
    viewer = switch.node("viewer")
    assert show(viewer, "show hostname")["hostname"] == "tor1"
    with pytest.raises(CommandError) as rejected:
        viewer.config(["vlan 11"])
    assert rejected.value.error_code == 1005
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node(password="wrong").enable("show version")
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node("stranger").enable("show version")
    switch.fault(wrong_credentials=True)
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node().enable("show version")


def test_the_enable_password(rack: Rack) -> None:
    switch = rack.switch(enable="s3cret")
    with pytest.raises(CommandError) as rejected:
        switch.node().enable("show running-config", encoding="text")
    assert "Bad secret" in str(rejected.value.output)
    node = switch.node()
    node.enable_authentication("s3cret")
    assert "hostname tor1" in show_text(node, "show running-config")


def test_a_certificate_instead_of_a_password(rack: Rack) -> None:
    from openipu.twin.devices.eos.config.startup import startup_config
    from openipu.twin.devices.eos.switch import Credentials

    switch = rack.switch()
    client = rack.certs / "client"
    context = ssl.create_default_context(cafile=str(rack.certs / "ca" / load.CA))
    context.load_cert_chain(client / "client.crt", client / "client.key")
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "runCmds", "params": {"version": 1, "cmds": ["show hostname"]}}
    )

    def request() -> int:
        channel = http.client.HTTPSConnection("127.0.0.1", switch.port, context=context, timeout=10)
        channel.request("POST", "/command-api", body)
        status = channel.getresponse().status
        channel.close()
        return status

    assert request() == 401  # the switch has no user of that name
    switch.do(setattr, switch.switch, "credentials", Credentials({issue.common_name(load.CLIENT): "unused"}))
    assert request() == 200
    assert startup_config("a", "10.0.0.1/24").startswith("hostname a")


def test_a_login_with_a_cookie(switch: ServedSwitch) -> None:
    context = ssl.create_default_context(cafile=str(switch.certs / "ca" / load.CA))
    node = switch.node(context=context)
    session = pyeapi.eapilib.HttpsEapiSessionConnection(
        "127.0.0.1", switch.port, username=USER, password=PASSWORD, context=context
    )
    assert session.execute(["show hostname"])["result"][0] == show(node, "show hostname")


def test_the_oldest_login_expires(switch: ServedSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MAX_COOKIES", 2)
    context = ssl.create_default_context(cafile=str(switch.certs / "ca" / load.CA))
    channel = http.client.HTTPSConnection("127.0.0.1", switch.port, timeout=10, context=context)

    def post(path: str, body: dict[str, Any], cookie: str = "") -> tuple[int, str]:
        channel.request("POST", path, json.dumps(body), {"Cookie": cookie})
        response = channel.getresponse()
        response.read()
        return response.status, response.getheader("Set-Cookie", "").partition(";")[0]

    cookies = [post("/login", {"username": USER, "password": PASSWORD})[1] for _ in range(3)]
    assert [post("/command-api", {}, cookie)[0] for cookie in cookies] == [401, 200, 200]
    channel.close()


def test_an_untrusted_certificate(switch: ServedSwitch) -> None:
    with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        switch.node(context=ssl.create_default_context()).enable("show version")


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


def test_a_port_in_use(rack: Rack) -> None:
    import asyncio

    from openipu.twin.devices.eos.server import serve

    switch = rack.switch()
    with pytest.raises(OSError, match="in use"):
        asyncio.run(serve(rack.switch("tor2").switch, "127.0.0.1", switch.port, None))


def test_a_slow_switch(switch: ServedSwitch) -> None:
    switch.fault(slow=600)
    with pytest.raises(ConnectionError, match="timed out"):
        show(switch.node(timeout=0.5), "show hostname")
    assert switch.requests == 0
    switch.fault(slow=0.1)
    assert show(switch.node(), "show hostname")["hostname"] == "tor1"


def test_a_switch_that_rejects_connections(switch: ServedSwitch) -> None:
    node = switch.node()
    show(node, "show hostname")
    switch.fault(rejecting=True)
    with pytest.raises(ConnectionError, match=r"Connection refused|reset"):
        show(node, "show hostname")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", switch.port), timeout=5)
    switch.fault()
    assert show(switch.node(), "show hostname")["hostname"] == "tor1"


@pytest.mark.parametrize(("moment", "committed"), [("before", False), ("after", True)])
def test_a_connection_that_breaks_in_a_commit(switch: ServedSwitch, moment: str, committed: bool) -> None:
    switch.fault(drop_commit=moment)
    with pytest.raises(ConnectionError):
        switch.node().run_commands(["configure session a", "vlan 40", "commit"])
    assert ("vlan 40" in switch.config()) == committed
    # The fault is over, so that the session can be committed now.
    if not committed:
        switch.node().run_commands(["configure session a commit"])
        assert "vlan 40" in switch.config()


def test_a_full_session_table(switch: ServedSwitch) -> None:
    switch.fault(full_sessions=True)
    with pytest.raises(CommandError) as rejected:
        switch.node().run_commands(["configure session a", "vlan 40"])
    assert "Maximum number of pending sessions" in str(rejected.value.output)
    switch.fault()
    switch.node().run_commands(["configure session a", "vlan 40", "commit"])
    assert "vlan 40" in switch.config()


def test_a_confirmed_and_an_unconfirmed_commit(switch: ServedSwitch) -> None:
    node = switch.node()
    node.run_commands(["configure session a", "vlan 40", "commit timer 00:00:30"])
    assert "vlan 40" in switch.config()
    assert show(node, "show configuration sessions")["sessions"]["a"]["state"] == "pendingCommitTimer"
    node.run_commands(["configure session a commit"])
    assert switch.sessions() == {"a": "completed"}
    commands = ["configure session b", "no vlan 40", "commit timer 00:00:01", "show running-config"]
    assert "vlan 40" not in node.run_commands(commands)[-1]["cmds"]
    # The rollback needs no request.
    requests = switch.requests
    until(lambda: "vlan 40" in switch.config())
    assert switch.requests == requests
    assert "b" not in switch.sessions()


@pytest.mark.parametrize(
    "commands",
    [
        ["interface Management1", "shutdown"],
        ["interface Management1", "no ip address"],
        ["interface Management1", "ip address 10.9.9.9/24"],
        ["management api http-commands", "shutdown"],
        ["management api http-commands", "no protocol https"],
        ["no management api http-commands"],
    ],
    ids=" ".join,
)
def test_an_unreachable_switch_rolls_back(switch: ServedSwitch, commands: list[str]) -> None:
    before = switch.config()
    with pytest.raises(ConnectionError):
        switch.node(timeout=0.5).run_commands(["configure session a", *commands, "commit timer 00:05:00"])
    until(lambda: switch.config() != before)
    with pytest.raises(ConnectionError):
        show(switch.node(timeout=0.5), "show hostname")

    def expire() -> None:
        switch.switch.sessions.get("a").deadline = switch.switch.clock()
        switch.served.refresh()

    switch.do(expire)
    assert switch.config() == before
    assert show(switch.node(), "show hostname")["hostname"] == "tor1"


def test_a_restart_keeps_the_startup_configuration(rack: Rack, tmp_path: Path) -> None:
    state = tmp_path / "tor1"
    switch = rack.switch(state=state)
    switch.node().run_commands(["configure", "vlan 50", "end", "write memory", "configure", "vlan 60"])
    assert "vlan 50,60" in (state / "running-config").read_text()
    again = rack.switch(state=state)
    assert "vlan 50" in again.config()
