# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of the twin: abbreviations, errors with their codes, and filters after a bar."""

from __future__ import annotations

import json

import pytest

from openipu.twin.devices.eos.cli import Cli
from openipu.twin.devices.eos.config.grammar import CliError
from openipu.twin.devices.eos.eapi import handle
from openipu.twin.devices.eos.filters import split
from tests.unit.twin.devices.eos.switch_lines import Console


@pytest.fixture
def console() -> Console:
    return Console()


def rejection(console: Console, command: str) -> tuple[int, str]:
    """Return code and text of the error of a command."""
    with pytest.raises(CliError) as rejected:
        console.type(command)
    return rejected.value.code, rejected.value.text


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("sh ver", "show version"),
        ("sh run", "show running-config"),
        ("sh int Et1/1 st", "show interfaces Ethernet1/1 status"),
        ("sh int ethernet 1/1 st", "show interfaces Ethernet1/1 status"),
        ("sh lldp nei", "show lldp neighbors"),
        ("sh mac addr", "show mac address-table"),
    ],
)
def test_abbreviated_commands(console: Console, short: str, whole: str) -> None:
    abbreviating = Console(complete=True)
    assert abbreviating.type(short) == console.type(whole)
    assert rejection(console, short)[0] == 1002  # eAPI needs autoComplete for abbreviations


def test_abbreviated_lines() -> None:
    console = Console(complete=True)
    new = console.configure("int et9/1", "desc ipum01 rnic", "sw mo trunk", "sw tr al vl 11", "chan 4 mo act")
    assert [line.strip() for line in new] == [
        "interface Port-Channel4",
        "description ipum01 rnic",
        "switchport trunk allowed vlan 11",
        "switchport mode trunk",
        "channel-group 4 mode active",
    ]


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("show nothing", 1002, "Invalid input (at token 1: 'nothing')"),
        ("show", 1002, "Incomplete command (at token 0: 'show')"),
        ("show ver", 1002, "Incomplete token (at token 1: 'ver')"),
        ("show version please", 1002, "Invalid input (at token 2: 'please')"),
        ("show interfaces Ethernet99/1 status", 1002, "Invalid input (at token 2: 'Ethernet99/1')"),
        ("show vlan 4095", 1002, "Invalid input (at token 2: '4095')"),
        ("show vlan 999", 1000, "VLAN 999 not found in current VLAN database"),
        # A form that the twin does not know is rejected. It never answers with the output of another form.
        ("show version detail", 1002, "Invalid input (at token 2: 'detail')"),
        ("show logging threshold errors", 1002, "Invalid input (at token 2: 'threshold')"),
        ("show spanning-tree detail", 1002, "Invalid input (at token 2: 'detail')"),
        ("show spanning-tree mst configuration", 1002, "Invalid input (at token 2: 'mst')"),
        ("show spanning-tree interface Ethernet1/1", 1002, "Invalid input (at token 2: 'interface')"),
        ("show snmp user", 1002, "Invalid input (at token 2: 'user')"),
        ("show lacp interface detailed", 1000, "The twin prints this command in JSON only"),
        ("show ipv6 interface", 1000, "No IPv6 configured interfaces"),
        ("show spanning-tree vlan 999", 1000, "Spanning tree instance for vlan 999 not found"),
        ("vlan 11", 1002, "Invalid input (at token 0: 'vlan')"),  # not in configuration mode
        ("commit", 1002, "Invalid input (at token 0: 'commit')"),  # not in a session
        ("configure session absent commit", 1000, "Session absent does not exist"),
    ],
)
def test_rejected_commands(console: Console, command: str, code: int, text: str) -> None:
    assert rejection(console, command) == (code, text)


@pytest.mark.parametrize("name", ["Et9/1", "et9/1", "Ethernet 9/1", "ethernet9/1"])
def test_names_of_interfaces_may_be_short_or_spaced(console: Console, name: str) -> None:
    assert console.type(f"show interfaces {name} status") == console.type("show interfaces Ethernet9/1 status")
    assert console.configure(f"interface {name}", "description x") == ["   description x"]


@pytest.mark.parametrize(
    "names",
    ["Port-Channel5-6", "port-channel5-6", "port-channel 5-6", "Port-channel5,6", "po5-po6", "Po 5-6", "port-c5-6"],
)
def test_spellings_of_port_channels(console: Console, names: str) -> None:
    assert console.configure(f"interface {names}", "description x") == [
        *("interface Port-Channel5", "   description x", "interface Port-Channel6", "   description x")
    ]


def test_spanning_tree_of_a_vlan(console: Console) -> None:
    console.configure("vlan 11")
    tree = console.show_json("show spanning-tree vlan 11")["spanningTreeVlanInstances"]["11"]
    assert tree["spanningTreeVlanInstance"]["protocol"] == "mstp"
    console.configure("spanning-tree mode rapid-pvst")
    assert rejection(console, "show spanning-tree vlan 11")[0] == 1000
    console.configure("spanning-tree mode none")
    assert console.show_json("show spanning-tree vlan 11") == {"spanningTreeVlanInstances": {}}


def test_vrfs(console: Console) -> None:
    console.configure("vrf instance MGMT", "interface Management1", "vrf MGMT", "ip address 10.1.3.111/24")
    tree = console.show_json("show vrf")["vrfs"]
    assert (tree["default"]["interfaces"], tree["MGMT"]["interfaces"]) == ([], ["Management1"])
    assert console.show_json("show ip interface Management1")["interfaces"]["Management1"]["vrf"] == "MGMT"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("mtu 67", "Invalid input (at token 1: '67')"),
        ("mtu 9215", "Invalid input (at token 1: '9215')"),
        ("mtu", "Incomplete command (at token 0: 'mtu')"),
        ("switchport access vlan 0", "Invalid input (at token 3: '0')"),
        ("channel-group 1 mode sometimes", "Invalid input (at token 3: 'sometimes')"),
        ("frobnicate", "Invalid input (at token 0: 'frobnicate')"),
    ],
)
def test_invalid_lines(console: Console, line: str, text: str) -> None:
    before = console.lines
    console.type("configure", "interface Ethernet9/1")
    assert rejection(console, line) == (1002, text)
    assert console.lines == before


def test_unprivileged_mode() -> None:
    console = Console()
    cli = Cli(console.switch, "admin")
    assert "tor1" in cli.run("show hostname")["output"]
    with pytest.raises(CliError, match="privileged mode required") as rejected:
        cli.run("show running-config")
    assert rejected.value.code == 1002
    cli.run("enable")
    cli.run("show running-config")
    cli.run("disable")
    with pytest.raises(CliError):
        cli.run("configure")


@pytest.mark.parametrize("command", ["configure", "configure session x", "write memory", "no vlan 3"])
def test_read_only_users(console: Console, command: str) -> None:
    viewer = Cli(console.switch, "viewer")
    viewer.run("enable")
    viewer.run("show running-config")
    with pytest.raises(CliError) as rejected:
        viewer.run(command)
    assert rejected.value.code == 1005


def test_filters(console: Console) -> None:
    console.configure("interface Ethernet9/1", "description ipum01 rnic", "vlan 11", "name data")
    assert console.type("show running-config | section Ethernet9/1") == (
        "interface Ethernet9/1\n   description ipum01 rnic\n"
    )
    assert console.type("show running-config | include ^vlan") == "vlan 11\n"
    assert console.type("show running-config | grep 'name d'") == "   name data\n"
    assert "!" not in console.type("show running-config | exclude !")
    assert console.type("show running-config | begin ^interface Management1").splitlines()[0] == "interface Management1"
    assert console.type("show running-config | section interface | include rnic") == "   description ipum01 rnic\n"
    assert console.type("show version | include nothing of the kind") == ""
    assert rejection(console, "show version | include [")[0] == 1000
    assert rejection(console, "show version | frobnicate")[0] == 1002


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ('"Software image version"', "Software image version: 4.28.3M"),
        ("-i software", "Software image version: 4.28.3M"),
        ("-E 'image ver|Architecture'", "Software image version: 4.28.3M\nArchitecture: i686"),
        ("'image ver\\|Architecture'", "Software image version: 4.28.3M\nArchitecture: i686"),
        ("'image ver|Architecture'", ""),
        ("software", ""),
        ("-iv '[a-z]'", ""),
    ],
)
def test_grep_has_quotes_and_options(console: Console, words: str, found: str) -> None:
    printed = console.type(f"show version | grep {words}")
    assert [line for line in printed.splitlines() if line] == found.splitlines()


@pytest.mark.parametrize(
    ("words", "line", "found"),
    [
        (r"'a\\+b'", r"a\+b", True),  # a backslash, then +
        (r"'a\\+b'", r"a\\b", False),
        (r"'a\+b'", "aab", True),
        (r"'a\\\+b'", r"a\\b", True),
    ],
)
def test_grep_has_escaped_backslashes(words: str, line: str, found: bool) -> None:
    _command, [grep] = split(f"show version | grep {words}")
    assert (grep.apply(line) == line) == found


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("include", "Incomplete command (at token 3: 'include')"),
        ("include Arista | section", "Incomplete command (at token 6: 'section')"),
        ('include "Software image"', "Invalid input (at token 3: 'include')"),
        ("grep -c Arista", "Invalid input (at token 3: 'grep')"),
        ("grep Arista file", "Invalid input (at token 3: 'grep')"),
        ("grep Arista | wc -l", "Invalid input (at token 3: 'grep')"),
        ("grep '[[:alpha:]]'", "Invalid input (at token 3: 'grep')"),
        ("grep 'Arista", "Invalid input (at token 3: 'grep')"),
        ("nz", "Invalid input (at token 3: 'nz')"),
        ("include Arista | tee flash:a", "Invalid input (at token 6: 'tee')"),
        ("no-more now", "Invalid input (at token 3: 'no-more')"),
        ("wc -l", "Invalid input (at token 2: '|')"),
        ("inc Arista", "Invalid input (at token 2: '|')"),
    ],
)
def test_other_filters_are_rejected(console: Console, words: str, text: str) -> None:
    assert rejection(console, f"show version | {words}") == (1002, text)


def test_a_pattern_with_bars(console: Console) -> None:
    """Modules of arista.eos use such patterns."""
    command = "show version | include nothing | Arista | traffic"
    assert console.type(command) == ""
    assert console.type("show running-config | include hostname |nothing") == "hostname tor1\n"


def test_abbreviated_filters() -> None:
    console = Console(complete=True)
    assert console.type("sh ver | i Architecture") == "Architecture: i686\n"
    assert json.loads(console.type("sh host | js"))["hostname"] == "tor1"
    assert rejection(console, "sh ver | n")[0] == 1002  # no-more and nz


def test_enable_is_abbreviated() -> None:
    console = Console(complete=True)
    cli = Cli(console.switch, "admin", complete=True)
    cli.run("en")
    assert cli.privileged


def test_the_json_filter(console: Console) -> None:
    assert json.loads(console.type("show version | json")) == console.show_json("show version")
    for command in ("show logging | json", "show running-config | section vlan | json"):
        assert rejection(console, command)[0] == 1003
    with pytest.raises(CliError) as rejected:
        console.show_json("show running-config | include vlan")
    assert rejected.value.code == 1003


def test_a_configuration_as_json(console: Console) -> None:
    console.configure("interface Ethernet9/1", "mtu 9214")
    found = console.show_json("show running-config")["cmds"]
    assert found["hostname tor1"] is None
    assert found["interface Ethernet9/1"] == {"comments": [], "cmds": {"mtu 9214": None}}
    assert list(found) == [line for line in console.lines if not line.startswith((" ", "!"))]


def call(console: Console, *commands: str, user: str = "admin", **params: object) -> dict[str, object]:
    """Return the response of eAPI."""
    body = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "runCmds",
        "params": {"version": 1, "cmds": ["enable", *commands], **params},
    }
    found: dict[str, object] = handle(console.switch, user, json.dumps(body).encode())
    return found


@pytest.mark.parametrize(
    ("commands", "user", "code", "words"),
    [
        (["show vlan 999"], "admin", 1000, "could not run command"),
        (["show nothing"], "admin", 1002, "invalid command"),
        (["show logging"], "admin", 1003, "unconverted command"),
        (["configure"], "viewer", 1005, "permission to run command denied"),
    ],
)
def test_error_codes_of_eapi(console: Console, commands: list[str], user: str, code: int, words: str) -> None:
    found = call(console, "show hostname", *commands, "show version", user=user)
    error = found["error"]
    assert isinstance(error, dict)
    assert error["code"] == code
    assert error["message"] == f"CLI command 3 of 4 '{commands[0]}' failed: {words}"
    # The data has the results of the commands before it and the error; the commands after it did not run.
    assert [set(item) for item in error["data"]] == [set(), {"hostname", "fqdn"}, {"errors"}]


def test_continuing_after_an_error(console: Console) -> None:
    found = call(console, "show nothing", "show hostname", stopOnError=False)
    error = found["error"]
    assert isinstance(error, dict)
    assert (error["code"], len(error["data"])) == (1002, 3)
    assert error["data"][-1]["hostname"] == "tor1"


def test_modes_end_with_their_request(console: Console) -> None:
    assert "result" in call(console, "configure", "vlan 30")
    assert "error" in call(console, "vlan 31")
    assert "vlan 30" in console.lines
