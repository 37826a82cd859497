# SPDX-License-Identifier: GPL-3.0-or-later
"""ANTA, the test programs of Arista's network architects, against the EOS twin.

`anta_catalog.yml` has the tests that fit a leaf of layer 2. The other tests need functions that the twin rejects.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.devices.eos.cli import Cli
from openipu.twin.devices.eos.config.grammar import CliError
from tests import ROOT
from tests.integration.eos_switches import ADDRESS, PASSWORD, USER, Cables, ServedSwitch, rack_of_switches

pytestmark = pytest.mark.peers
CLIENTS = Path(os.environ.get("OPENIPU_NETWORK_CLIENTS", ROOT / ".cache/network-clients"))
CATALOG = ROOT / "tests/peers/anta_catalog.yml"
Catalog = dict[str, list[dict[str, Any]]]  # module -> tests with their inputs
# Tests with commands that the twin does not know: it rejects them, so an answer is never mistaken for a proof.
REJECTED: Catalog = {
    "anta.tests.hardware": [{"VerifyTransceiversTemperature": None}, {"VerifyPCIeErrors": {"thresholds": {}}}],
    "anta.tests.logging": [{"VerifyLoggingErrors": None}],
    "anta.tests.software": [{"VerifyTerminAttrVersion": {"versions": ["v1.19.3"]}}],
    "anta.tests.stp": [{"VerifySTPDisabledVlans": {"vlans": [11]}}],
    "anta.tests.system": [{"VerifyReloadCause": None}, {"VerifyCoredump": None}],
    "anta.tests.interfaces": [{"VerifyStormControlDrops": None}],
}
# Tests whose commands the twin knows, for a function that it does not have: the result is that of a real switch.
OTHER: Catalog = {
    "anta.tests.advisories.sa_159": [{"SA159": None}],
    "anta.tests.interfaces": [{"VerifyIPProxyARP": {"interfaces": ["Management1"]}}],
    "anta.tests.security": [{"VerifyAPIHttpsSSL": {"profile": "pod"}}],
    "anta.tests.snmp": [{"VerifySnmpPDUCounters": None}],
    "anta.tests.vxlan": [
        {"VerifyVxlan1Interface": None},
        {"VerifyVxlan1ConnSettings": {"source_interface": "Loopback1", "udp_port": 4789}},
        {"VerifyVxlan1VVTEPIPAddresses": {"ipv4_address": "10.0.0.1"}},
    ],
}
# Values of templates; those of commands that the twin rejects in any case do not matter.
VALUES = {"vlan": "11", "vrf": "default", "command": "dir flash:"}
CONFIG = [
    "vlan 11",
    "interface Et7/1",
    "channel-group 5 mode active",
    "interface Port-Channel 5",
    "switchport mode trunk",
    "interface Ethernet 9/1",
    "switchport access vlan 11",
    "exit",
    "ntp server 10.0.0.1",
    "snmp-server location here",
    "snmp-server contact me",
    "snmp-server community public ro",
    "snmp-server host 10.0.0.9 version 2c public",
    "snmp-server local-interface Management1",
    "logging host 10.0.0.9",
    "logging source-interface Management1",
    "ip name-server 10.0.0.8",
    {"cmd": "banner login", "input": "For users of the POD"},
    {"cmd": "banner motd", "input": "Maintenance on Monday"},
]


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[ServedSwitch]:
    cables = {
        "Ethernet9/1": Neighbour("b-ipum1", "00:11:22:33:44:55", "eth1"),
        "Ethernet7/1": Neighbour("poplar1", "00:11:22:33:44:66", "eno1"),
    }
    with rack_of_switches(tmp_path) as rack:
        switch = rack.switch(cabling=Cables(cables))
        assert ADDRESS == "10.1.3.111/24", "the catalogue names this address"
        switch.node().config(CONFIG)
        switch.node().enable("write memory")
        yield switch


def run(switch: ServedSwitch, folder: Path, catalog: Path) -> dict[str, tuple[str, str]]:
    """Run a catalogue; return test -> result and messages."""
    program = CLIENTS / "bin/anta"
    assert program.exists(), f"No ANTA in {CLIENTS}: run 'make test-peers'."
    host = {"host": "127.0.0.1", "port": switch.port, "name": "tor1"}
    (folder / "inventory.yml").write_text(yaml.safe_dump({"anta_inventory": {"hosts": [host]}}))
    files = ["--inventory", folder / "inventory.yml", "--catalog", catalog]
    completed = subprocess.run(
        [program, "nrfu", "--enable", *files, "json", "--output", folder / "results.json"],
        env={**os.environ, "ANTA_USERNAME": USER, "ANTA_PASSWORD": PASSWORD},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (folder / "results.json").exists(), completed.stdout + completed.stderr
    found = json.loads((folder / "results.json").read_text())
    return {each["test"]: (each["result"], " ".join(each["messages"])) for each in found}


def names(catalog: Catalog) -> list[str]:
    """Return the names of all tests of a catalogue."""
    return [name for tests in catalog.values() for each in tests for name in each]


def test_all_tests_for_a_leaf_of_layer_2_pass(switch: ServedSwitch, tmp_path: Path) -> None:
    found = run(switch, tmp_path, CATALOG)
    listed = names(yaml.safe_load(CATALOG.read_text()))
    assert sorted(found) == sorted(listed)
    assert {name: each for name, each in found.items() if each[0] != "success"} == {}


def test_a_fault_fails_the_test_for_it(switch: ServedSwitch, tmp_path: Path) -> None:
    switch.node().config(["interface Ethernet9/1", "shutdown", "mtu 9000"])
    found = run(switch, tmp_path, CATALOG)
    failed = {name for name, (result, _) in found.items() if result != "success"}
    assert failed == {
        "VerifyInterfacesStatus",
        "VerifyL2MTU",
        "VerifyLLDPNeighbors",
        "VerifyRunningConfigDiffs",
    }


def test_other_tests_are_rejected(switch: ServedSwitch, tmp_path: Path) -> None:
    catalog = tmp_path / "rejected.yml"
    catalog.write_text(yaml.safe_dump(REJECTED))
    found = run(switch, tmp_path, catalog)
    assert len(found) == sum(map(len, REJECTED.values()))
    assert {result for result, _ in found.values()} == {"error"}, found
    assert all("Invalid input" in messages for _, messages in found.values()), found


def test_functions_that_a_leaf_does_not_have(switch: ServedSwitch, tmp_path: Path) -> None:
    catalog = tmp_path / "other.yml"
    catalog.write_text(yaml.safe_dump(OTHER))
    results = {name: result for name, (result, _) in run(switch, tmp_path, catalog).items()}
    assert results == {name: "skipped" if "Vxlan1" in name else "failure" for name in names(OTHER)}


def test_a_command_of_each_remaining_test_is_rejected(switch: ServedSwitch) -> None:
    """The page lists the tests that pass and those of OTHER. This test makes both lists complete."""
    script = ROOT / "tests/peers/anta_commands.py"
    completed = subprocess.run([CLIENTS / "bin/python", script], capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    commands = json.loads(completed.stdout)
    listed = {*names(yaml.safe_load(CATALOG.read_text())), *names(OTHER)}
    assert listed < commands.keys() and len(commands) > 200
    assert set(names(REJECTED)) < commands.keys() - listed
    cli = Cli(switch.switch, USER)
    cli.run("enable")
    accepted = {
        test: found
        for test, found in commands.items()
        if test not in listed and not any(is_rejected(cli, command) for command in found)
    }
    assert accepted == {}


def is_rejected(cli: Cli, template: str) -> bool:
    """Return whether the twin does not know a command."""
    command = re.sub(r"{(\w+)}", lambda name: VALUES.get(name[1], "1"), template)
    try:
        cli.run(command)
    except CliError as error:
        return error.code == 1002
    return False
