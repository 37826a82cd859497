# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of Net-SNMP against a switch of the twin."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.twin.devices import logins
from openipu.twin.devices.eos.snmp_objects import index_of
from openipu.twin.devices.snmp.if_mib import INTERFACES, INTERFACES_X
from tests.integration.bringup.rack_with_devices import RackWithDevices
from tests.peers.programs import needs

pytestmark = needs("snmpget", "snmpwalk", "snmpbulkwalk", "snmpset", packages="snmp")
SWITCH, COMMUNITY = "tor1", "read-only"
KEYS = ("-a", "SHA", "-A", logins.AUTH_KEY, "-x", "AES", "-X", logins.PRIV_KEY)
V3 = ("-v3", "-l", "authPriv", "-u", logins.READER, *KEYS)
V2C = ("-v2c", "-c", COMMUNITY)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RackWithDevices]:
    made = RackWithDevices(tmp_path_factory.mktemp("rack"), "AP8886")
    made.node(SWITCH).config([f"snmp-server community {COMMUNITY} ro"])
    yield made
    made.close()


def run(rack: RackWithDevices, command: str, login: tuple[str, ...], *arguments: str) -> str:
    """Run a command without MIBs, so that it prints numbers, and return its output."""
    address = f"{rack.address(SWITCH)}:{logins.SNMP_PORT}"
    result = subprocess.run(
        [command, "-m", "", "-Oqn", "-r", "0", "-t", "10", *login, address, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return result.stdout + result.stderr


def dotted(oid: tuple[int, ...]) -> str:
    return "".join(f".{number}" for number in oid)


@pytest.mark.parametrize("login", [V3, V2C], ids=["v3", "v2c"])
@pytest.mark.parametrize("command", ["snmpwalk", "snmpbulkwalk"])
def test_a_walk_of_the_interfaces(rack: RackWithDevices, command: str, login: tuple[str, ...]) -> None:
    lines = run(rack, command, login, dotted(INTERFACES_X["Name"].oid)).splitlines()
    names = [line.split(" ")[1].strip('"') for line in lines]
    assert names[:2] == ["Ethernet33", "Ethernet34"]  # in the order of their numbers
    assert {"Ethernet1/1", "Ethernet32/1", "Management1"} <= set(names)


def test_a_link_follows_its_cable(rack: RackWithDevices) -> None:
    oid = dotted(INTERFACES["OperStatus"].at(index_of("Ethernet9/1")))
    assert run(rack, "snmpget", V3, oid) == f"{oid} 1\n"
    rack.fault(f"unplug {SWITCH}:Ethernet9/1")
    assert run(rack, "snmpget", V3, oid) == f"{oid} 6\n"
    rack.fault("heal")
    assert run(rack, "snmpget", V3, oid) == f"{oid} 1\n"


def test_a_complete_walk_has_ascending_names(rack: RackWithDevices) -> None:
    printed = run(rack, "snmpbulkwalk", V3, ".1")
    assert "OID not increasing" not in printed
    assert len(printed.splitlines()) > 27 * 35  # columns of 35 ports


@pytest.mark.parametrize("login", [V3, V2C], ids=["v3", "v2c"])
def test_writes_are_rejected(rack: RackWithDevices, login: tuple[str, ...]) -> None:
    printed = run(rack, "snmpset", login, "1.3.6.1.2.1.1.5.0", "s", "changed")
    assert "noAccess" in printed


def test_unknown_users_are_rejected(rack: RackWithDevices) -> None:
    assert "Unknown user name" in run(rack, "snmpget", (*V3[:4], "other", *KEYS), "1.3.6.1.2.1.1.5.0")


def test_the_state_folder_contains_no_passwords_of_users(rack: RackWithDevices) -> None:
    """EOS stores localized keys only."""
    files = [path for path in Path(rack.folder / "devices" / SWITCH).rglob("*") if path.is_file()]
    assert any("snmp-server user" in path.read_text() for path in files)
    assert not [path for path in files if logins.AUTH_KEY in path.read_text()]
