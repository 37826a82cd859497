# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of Net-SNMP against PDUs of the twin."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.smi import Oid

from tests.integration.pdu_agents import (
    AUTH_KEY,
    PRIV_KEY,
    READER,
    READS,
    WITH_V2C,
    WRITER,
    WRITES,
    ServedPdu,
    agents_of_pdus,
)
from tests.peers.programs import needs

pytestmark = needs("snmpwalk", "snmpbulkwalk", "snmpget", "snmpset", packages="snmp")
V3 = ("-v3", "-l", "authPriv", "-a", "SHA", "-A", AUTH_KEY, "-x", "AES", "-X", PRIV_KEY, "-u", WRITER)
V3_READER = ("-v3", "-l", "authPriv", "-a", "SHA-256", "-A", AUTH_KEY, "-x", "AES-256", "-X", PRIV_KEY, "-u", READER)
V2C, V2C_READER = ("-v2c", "-c", WRITES), ("-v2c", "-c", READS)
WRITERS = {"v3": V3, "v2c": V2C}
READERS = {"v3": V3_READER, "v2c": V2C_READER}

NAME, LOCATION = mib.DEVICE_CONFIG["Name"].at(1), mib.DEVICE_CONFIG["Location"].at(1)
NEAR = mib.BANK_CONFIG["NearOverloadCurrentThreshold"]
WATTS = {1: 1000.0, 8: 230.0}
TENTHS_OF_BANK_1 = {"AP8886": "44", "AP8953": "55"}  # A; outlet 8 of an AP8886 is on bank 2


@pytest.fixture(scope="module", params=["AP8886", "AP8953"])
def served(request: pytest.FixtureRequest) -> Iterator[ServedPdu]:
    with agents_of_pdus() as agents:
        yield agents.pdu("pdu1", request.param, WITH_V2C, WATTS)


def dotted(oid: Oid) -> str:
    return "".join(f".{number}" for number in oid)


def run_command(
    served: ServedPdu, command: str, login: tuple[str, ...], *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of Net-SNMP without MIBs, so that it prints numbers."""
    return subprocess.run(
        [command, "-m", "", "-On", "-r", "0", "-t", "10", *login, f"{served.server.host}:{served.port}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def values(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert result.returncode == 0, result.stderr
    pairs = (line.split(" = ", 1) for line in result.stdout.splitlines())
    return {oid: re.sub(r"^[\w-]+: ", "", value) for oid, value in pairs}


@pytest.mark.parametrize("login", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("command", ["snmpwalk", "snmpbulkwalk"])
def test_a_walk_returns_all_tables(served: ServedPdu, command: str, login: tuple[str, ...]) -> None:
    # The command fails on object names that do not increase, and stops at the end of the MIB.
    found = values(run_command(served, command, login, ".1.3"))
    assert found[dotted(mib.IDENT["ModelNumber"].at(1))] == f'"{served.pdu.model.name}"'
    assert found[dotted(mib.SYSTEM_GROUP["ObjectID"].at())] == ".1.3.6.1.4.1.318.1.3.4.6"
    assert found[dotted(mib.BANK_STATUS["Current"].at(1))] == TENTHS_OF_BANK_1[served.pdu.model.name]
    for table in mib.TABLES:
        switched = table.name.startswith("rPDU2OutletSwitched") or table is mib.DEVICE_CONTROL
        present = [oid for oid in found if oid.startswith(f"{dotted(table.entry)}.")]
        assert bool(present) == (served.pdu.model.switched or not switched), table.name


@pytest.mark.parametrize("login", WRITERS.values(), ids=WRITERS)
def test_several_objects_are_written_and_read_back(served: ServedPdu, login: tuple[str, ...]) -> None:
    location = f"rack1 by {login[0]}"
    written = run_command(served, "snmpset", login, dotted(LOCATION), "s", location, dotted(NEAR.at(2)), "i", "11")
    assert values(written) == {dotted(LOCATION): f'"{location}"', dotted(NEAR.at(2)): "11"}
    assert values(run_command(served, "snmpget", login, dotted(LOCATION), dotted(NEAR.at(2)))) == values(written)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((dotted(NEAR.at(1)), "s", "12"), "wrongType"),
        ((dotted(NEAR.at(1)), "i", "17"), "wrongValue"),
        ((dotted(NEAR.at(7)), "i", "12"), "noCreation"),
        ((dotted(mib.BANK_STATUS["Current"].at(1)), "i", "1"), "notWritable"),
        ((dotted(mib.BANK_CONFIG["LowLoadCurrentThreshold"].at(1)), "i", "16"), "inconsistentValue"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rejected_write_changes_nothing(served: ServedPdu, change: tuple[str, ...], reason: str) -> None:
    before = values(run_command(served, "snmpget", V3, dotted(NAME)))
    result = run_command(served, "snmpset", V3, dotted(NAME), "s", "other", *change)
    assert result.returncode != 0
    assert f"Reason: {reason}" in result.stderr
    assert change[0] in result.stderr
    assert values(run_command(served, "snmpget", V3, dotted(NAME))) == before


@pytest.mark.parametrize("login", READERS.values(), ids=READERS)
def test_readers_read_only(served: ServedPdu, login: tuple[str, ...]) -> None:
    assert dotted(NAME) in values(run_command(served, "snmpget", login, dotted(NAME)))
    assert "Reason: noAccess" in run_command(served, "snmpset", login, dotted(NAME), "s", "other").stderr


@pytest.mark.parametrize(
    ("login", "error"),
    [
        ((*V3, "-u", "unknown"), "Unknown user name"),
        ((*V3, "-A", "another-key"), "Authentication failure"),
        ((*V3, "-X", "another-key"), "Decryption error"),
        ((*V3, "-l", "authNoPriv"), "Unsupported security level"),
        ((*V3, "-l", "noAuthNoPriv"), "Unsupported security level"),
        (("-v2c", "-c", "public", "-t", "0.3"), "Timeout"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_credentials_are_rejected(served: ServedPdu, login: tuple[str, ...], error: str) -> None:
    command = [
        "snmpget",
        "-m",
        "",
        "-r",
        "0",
        "-t",
        "10",
        *login,
        f"{served.server.host}:{served.port}",
        dotted(NAME),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode != 0
    assert error in result.stderr


def test_outlets_are_switched(served: ServedPdu) -> None:
    command, state = dotted(mib.OUTLET_CONTROL["Command"].at(1)), dotted(mib.OUTLET_STATUS["State"].at(1))
    off = run_command(served, "snmpset", V3, command, "i", "2")
    if not served.pdu.model.switched:
        assert "Reason: notWritable" in off.stderr
        return
    assert off.returncode == 0
    assert values(run_command(served, "snmpget", V3, state)) == {state: "1"}
    assert run_command(served, "snmpset", V3, command, "i", "1").returncode == 0
    assert values(run_command(served, "snmpget", V3, state)) == {state: "2"}
