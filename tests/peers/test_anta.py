# SPDX-License-Identifier: GPL-3.0-or-later
"""ANTA, the test programs of Arista's network architects, against the EOS twin.

`anta_catalog.yml` has the tests that fit a leaf of layer 2. The other tests need functions that the twin rejects.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from openipu.twin.cables.switch_cabling import Neighbour
from tests import ROOT
from tests.integration.eos_switches import ADDRESS, PASSWORD, USER, Cables, ServedSwitch, rack_of_switches

pytestmark = pytest.mark.peers
CLIENTS = Path(os.environ.get("OPENIPU_NETWORK_CLIENTS", ROOT / ".cache/network-clients"))
CATALOG = ROOT / "tests/peers/anta_catalog.yml"
# Tests with commands that the twin does not know: it rejects them, so an answer is never mistaken for a proof.
REJECTED = {
    "anta.tests.hardware": [{"VerifyTransceiversTemperature": None}, {"VerifyPCIeErrors": {"thresholds": {}}}],
    "anta.tests.logging": [{"VerifyLoggingErrors": None}],
    "anta.tests.software": [{"VerifyTerminAttrVersion": {"versions": ["v1.19.3"]}}],
    "anta.tests.stp": [{"VerifySTPDisabledVlans": {"vlans": [11]}}],
    "anta.tests.system": [{"VerifyReloadCause": None}, {"VerifyCoredump": None}],
    "anta.tests.interfaces": [{"VerifyStormControlDrops": None}],
}
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
    "logging host 10.0.0.9",
    "ip name-server 10.0.0.8",
    {"cmd": "banner login", "input": "For users of the POD"},
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


def test_all_tests_for_a_leaf_of_layer_2_pass(switch: ServedSwitch, tmp_path: Path) -> None:
    found = run(switch, tmp_path, CATALOG)
    listed = [name for tests in yaml.safe_load(CATALOG.read_text()).values() for each in tests for name in each]
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
