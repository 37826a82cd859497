# SPDX-License-Identifier: GPL-3.0-or-later
"""The EOS twin as pyeapi sees it, over verified TLS."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyeapi
import pytest
from eos_switches import PASSWORD, USER, Cables, Rack, ServedSwitch, rack_of_switches
from pyeapi.eapilib import CommandError, ConnectionError
from waiting import until

from openipu.twin.eos.surroundings import Neighbour
from openipu.vipu import tls

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
    return rack.switch(surroundings=Cables(CABLES))


def told(node: Any, command: str) -> dict[str, Any]:
    """What a command tells as data."""
    found: dict[str, Any] = node.enable(command)[0]["result"]
    return found


def printed(node: Any, command: str) -> str:
    """What a command prints."""
    return str(node.enable(command, encoding="text")[0]["result"]["output"])


def test_what_it_is(switch: ServedSwitch) -> None:
    node = switch.node()
    version = told(node, "show version")
    assert (version["modelName"], version["version"]) == ("DCS-7060CX-32S-F", "4.28.3M")
    assert version["serialNumber"] in printed(node, "show version")
    assert told(node, "show hostname") == {"hostname": "tor1", "fqdn": "tor1"}
    assert node.model == "7060"  # as pyeapi reads it


def test_ports_vlans_and_what_is_plugged_in(switch: ServedSwitch) -> None:
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
    ports = told(node, "show interfaces status")["interfaceStatuses"]
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
    rows = printed(node, "show interfaces status").splitlines()
    assert rows[2].split()[:7] == ["Et1/1", "b-ipum1", "eth1", "connected", "11", "full", "100G"]
    vlan = told(node, "show vlan 11")["vlans"]["11"]
    assert (vlan["name"], sorted(vlan["interfaces"])) == ("data", ["Ethernet1/1", "Port-Channel1"])
    assert [(row["port"], row["neighborDevice"]) for row in told(node, "show lldp neighbors")["lldpNeighbors"]] == [
        ("Ethernet1/1", "b-ipum1"),
        ("Ethernet2/1", "poplar1"),
    ]
    learnt = told(node, "show mac address-table")["unicastTable"]["tableEntries"]
    assert [(row["vlanId"], row["macAddress"], row["interface"]) for row in learnt] == [
        (11, "00:11:22:33:44:55", "Ethernet1/1"),
        (11, "00:11:22:33:44:77", "Port-Channel1"),
    ]
    assert list(told(node, "show port-channel")["portChannels"]["Port-Channel1"]["activePorts"]) == ["Ethernet2/1"]
    assert told(node, "show interfaces trunk")["trunks"]["Port-Channel1"]["nativeVlan"] == 11


def test_cables_that_are_moved_are_seen_elsewhere(rack: Rack) -> None:
    cables = Cables(CABLES)
    node = rack.switch(surroundings=cables).node()
    cables.ports["Ethernet5/1"] = cables.ports.pop("Ethernet1/1")
    found = [row["port"] for row in told(node, "show lldp neighbors")["lldpNeighbors"]]
    assert found == ["Ethernet2/1", "Ethernet5/1"]
    node.config(["interface Ethernet5/1", "no lldp receive"])
    assert [row["port"] for row in told(node, "show lldp neighbors")["lldpNeighbors"]] == ["Ethernet2/1"]
    node.config(["no lldp run"])
    with pytest.raises(CommandError):
        told(node, "show lldp neighbors")


def test_pyeapis_own_api_configures_it(switch: ServedSwitch) -> None:
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


def test_a_session_of_pyeapi(switch: ServedSwitch) -> None:
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
def test_commands_that_are_refused(switch: ServedSwitch, command: str, code: int, words: str) -> None:
    node = switch.node()
    with pytest.raises(CommandError) as refused:
        node.run_commands(["show hostname", command, "show version"])
    assert refused.value.error_code == code
    # The answers before it stand before it, and nothing after it was done.
    enabled, hostname, last = refused.value.output
    assert (enabled, hostname["hostname"]) == ({}, "tor1")
    assert words in last["errors"][0]
    assert f"CLI command 3 of 4 '{command}' failed" in str(refused.value)


def test_what_has_no_json_form(switch: ServedSwitch) -> None:
    with pytest.raises(CommandError) as refused:
        told(switch.node(), "show session-config named x diffs")
    assert refused.value.error_code == 1000
    with pytest.raises(CommandError) as refused:
        switch.node().run_commands(["show logging"])
    assert refused.value.error_code == 1003
    assert "format='text'" in str(refused.value.output[-1]["errors"])


def test_who_may_look_and_who_may_change(rack: Rack) -> None:
    switch = rack.switch(operators=frozenset({"viewer"}))
    viewer = switch.node("viewer")
    assert told(viewer, "show hostname")["hostname"] == "tor1"
    with pytest.raises(CommandError) as refused:
        viewer.config(["vlan 11"])
    assert refused.value.error_code == 1005
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node(password="wrong").enable("show version")
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node("nobody").enable("show version")
    switch.fault(wrong_credentials=True)
    with pytest.raises(ConnectionError, match="Unauthorized"):
        switch.node().enable("show version")


def test_the_password_of_enable(rack: Rack) -> None:
    switch = rack.switch(enable="s3cret")
    with pytest.raises(CommandError) as refused:
        switch.node().enable("show running-config", encoding="text")
    assert "Bad secret" in str(refused.value.output)
    node = switch.node()
    node.enable_authentication("s3cret")
    assert "hostname tor1" in printed(node, "show running-config")


def test_a_certificate_instead_of_a_password(rack: Rack) -> None:
    from openipu.twin.eos.startup import startup_config
    from openipu.twin.eos.switch import Credentials

    switch = rack.switch()
    client = rack.certs / "client"
    context = ssl.create_default_context(cafile=str(rack.certs / "ca" / tls.CA))
    context.load_cert_chain(client / "client.crt", client / "client.key")
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "runCmds", "params": {"version": 1, "cmds": ["show hostname"]}}
    )

    def ask() -> int:
        channel = http.client.HTTPSConnection("127.0.0.1", switch.port, context=context, timeout=10)
        channel.request("POST", "/command-api", body)
        status = channel.getresponse().status
        channel.close()
        return status

    assert ask() == 401  # the name in the certificate is no user of the switch
    switch.do(setattr, switch.switch, "credentials", Credentials({"vipu client": "unused"}))
    assert ask() == 200
    assert startup_config("a", "10.0.0.1/24").startswith("hostname a")


def test_a_login_that_lasts(switch: ServedSwitch) -> None:
    context = ssl.create_default_context(cafile=str(switch.certs / "ca" / tls.CA))
    node = switch.node(context=context)
    session = pyeapi.eapilib.HttpsEapiSessionConnection(
        "127.0.0.1", switch.port, username=USER, password=PASSWORD, context=context
    )
    assert session.execute(["show hostname"])["result"][0] == told(node, "show hostname")


def test_who_does_not_trust_it(switch: ServedSwitch) -> None:
    with pytest.raises(ConnectionError, match="CERTIFICATE_VERIFY_FAILED"):
        switch.node(context=ssl.create_default_context()).enable("show version")


def raw(switch: ServedSwitch, body: bytes) -> dict[str, Any]:
    """The answer to a body, whatever it is."""
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
def test_what_is_no_request(rack: Rack, body: bytes, code: int) -> None:
    answer = raw(rack.switch(secure=False), body)
    assert answer["error"]["code"] == code
    assert answer["id"] in {7, None}


def test_words_are_completed_only_when_that_is_asked_for(rack: Rack) -> None:
    switch = rack.switch(secure=False)

    def ask(**more: Any) -> dict[str, Any]:
        params = {"version": 1, "cmds": ["sh host"], **more}
        return raw(switch, json.dumps({"jsonrpc": "2.0", "id": "a", "method": "runCmds", "params": params}).encode())

    assert ask()["error"]["code"] == 1002
    assert ask(autoComplete=True)["result"][0]["hostname"] == "tor1"
    assert "execDuration" in ask(autoComplete=True, timestamps=True)["result"][0]["_meta"]


def test_one_connection_is_enough(rack: Rack) -> None:
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


def test_a_port_that_is_taken(rack: Rack) -> None:
    import asyncio

    from openipu.twin.eos.server import serve

    switch = rack.switch()
    with pytest.raises(OSError, match="in use"):
        asyncio.run(serve(rack.switch("tor2").switch, "127.0.0.1", switch.port, None))


def test_a_switch_that_is_slow(switch: ServedSwitch) -> None:
    switch.fault(slow=0.5)
    start = time.monotonic()
    told(switch.node(), "show hostname")
    assert time.monotonic() - start >= 0.5
    with pytest.raises(ConnectionError, match="timed out"):
        told(switch.node(timeout=0.2), "show hostname")


def test_a_switch_that_takes_no_connections(switch: ServedSwitch) -> None:
    node = switch.node()
    told(node, "show hostname")
    switch.fault(refusing=True)
    with pytest.raises(ConnectionError, match=r"refused|reset"):
        told(node, "show hostname")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", switch.port), timeout=5)
    switch.fault()
    assert told(switch.node(), "show hostname")["hostname"] == "tor1"


@pytest.mark.parametrize(("moment", "there"), [("before", False), ("after", True)])
def test_a_connection_that_breaks_in_a_commit(switch: ServedSwitch, moment: str, there: bool) -> None:
    switch.fault(drop_commit=moment)
    with pytest.raises(ConnectionError):
        switch.node().run_commands(["configure session a", "vlan 40", "commit"])
    assert ("vlan 40" in switch.config()) == there
    # Once only, and the session that was not committed can be.
    if not there:
        switch.node().run_commands(["configure session a commit"])
        assert "vlan 40" in switch.config()


def test_a_full_session_table(switch: ServedSwitch) -> None:
    switch.fault(full_sessions=True)
    with pytest.raises(CommandError) as refused:
        switch.node().run_commands(["configure session a", "vlan 40"])
    assert "Maximum number of pending sessions" in str(refused.value.output)
    switch.fault()
    switch.node().run_commands(["configure session a", "vlan 40", "commit"])
    assert "vlan 40" in switch.config()


def test_a_commit_that_is_confirmed_and_one_that_is_not(switch: ServedSwitch) -> None:
    node = switch.node()
    node.run_commands(["configure session a", "vlan 40", "commit timer 00:00:30"])
    assert "vlan 40" in switch.config()
    assert told(node, "show configuration sessions")["sessions"]["a"]["state"] == "pendingCommitTimer"
    node.run_commands(["configure session a commit"])
    assert switch.sessions() == {"a": "completed"}
    node.run_commands(["configure session b", "no vlan 40", "commit timer 00:00:01"])
    assert "vlan 40" not in switch.config()
    # By itself: nobody asks.
    asked = switch.requests
    until(lambda: "vlan 40" in switch.config())
    assert switch.requests == asked
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
def test_who_cuts_the_branch_he_sits_on(switch: ServedSwitch, commands: list[str]) -> None:
    before = switch.config()
    with pytest.raises(ConnectionError):
        switch.node(timeout=0.5).run_commands(["configure session a", *commands, "commit timer 00:00:03"])
    assert switch.config() != before
    with pytest.raises(ConnectionError):
        told(switch.node(timeout=0.3), "show hostname")
    until(lambda: switch.config() == before)
    assert told(switch.node(), "show hostname")["hostname"] == "tor1"


def test_what_is_kept_over_a_restart(rack: Rack, tmp_path: Path) -> None:
    state = tmp_path / "tor1"
    switch = rack.switch(state=state)
    switch.node().run_commands(["configure", "vlan 50", "end", "write memory", "configure", "vlan 60"])
    assert "vlan 50,60" in (state / "running-config").read_text()
    again = rack.switch(state=state)
    assert "vlan 50" in again.config()
