# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of Net-SNMP, which nobody here wrote, against PDUs of the twin."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from ansible_collections.openipu.pod.plugins.module_utils.pdu import mib
from ansible_collections.openipu.pod.plugins.module_utils.pdu.mib import Oid
from pdu_agents import AUTH_KEY, PRIV_KEY, READER, READS, WITH_V2C, WRITER, WRITES, ServedPdu, agents_of_pdus

COMMANDS = ("snmpwalk", "snmpbulkwalk", "snmpget", "snmpset")
MISSING = [command for command in COMMANDS if shutil.which(command) is None]
pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not installed: apt-get install snmp"),
]
V3 = ("-v3", "-l", "authPriv", "-a", "SHA", "-A", AUTH_KEY, "-x", "AES", "-X", PRIV_KEY, "-u", WRITER)
V3_READER = ("-v3", "-l", "authPriv", "-a", "SHA-256", "-A", AUTH_KEY, "-x", "AES-256", "-X", PRIV_KEY, "-u", READER)
V2C, V2C_READER = ("-v2c", "-c", WRITES), ("-v2c", "-c", READS)
WAYS = {"v3": V3, "v2c": V2C}
READERS = {"v3": V3_READER, "v2c": V2C_READER}

NAME, LOCATION = mib.DEVICE_CONFIG["Name"].at(1), mib.DEVICE_CONFIG["Location"].at(1)
NEAR = mib.BANK_CONFIG["NearOverloadCurrentThreshold"]
WATTS = {1: 1000.0, 8: 230.0}
TENTHS_OF_BANK_1 = {"AP8886": "44", "AP8953": "55"}  # A; outlet 8 of an AP8886 is on bank 2


@pytest.fixture(scope="module", params=["AP8886", "AP8953"])
def served(request: pytest.FixtureRequest) -> Iterator[ServedPdu]:
    with agents_of_pdus() as agents:
        yield agents.pdu("pdu1", request.param, WITH_V2C, WATTS)


def name(oid: Oid) -> str:
    return "".join(f".{number}" for number in oid)


def ask(served: ServedPdu, command: str, who: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Net-SNMP without any MIB, so that it prints numbers."""
    return subprocess.run(
        [command, "-m", "", "-On", "-r", "0", "-t", "10", *who, f"{served.server.host}:{served.port}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def values(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    pairs = (line.split(" = ", 1) for line in done.stdout.splitlines())
    return {oid: re.sub(r"^[\w-]+: ", "", value) for oid, value in pairs}


@pytest.mark.parametrize("who", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("command", ["snmpwalk", "snmpbulkwalk"])
def test_a_walk_gives_every_table(served: ServedPdu, command: str, who: tuple[str, ...]) -> None:
    # It would complain of names that do not rise, and it stops by itself at the end of the MIB.
    found = values(ask(served, command, who, ".1.3"))
    assert found[name(mib.IDENT["ModelNumber"].at(1))] == f'"{served.pdu.model.name}"'
    assert found[name(mib.SYSTEM_GROUP["ObjectID"].at())] == ".1.3.6.1.4.1.318.1.3.4.6"
    assert found[name(mib.BANK_STATUS["Current"].at(1))] == TENTHS_OF_BANK_1[served.pdu.model.name]
    for table in mib.TABLES:
        switched = table.name.startswith("rPDU2OutletSwitched") or table is mib.DEVICE_CONTROL
        there = [oid for oid in found if oid.startswith(f"{name(table.entry)}.")]
        assert bool(there) == (served.pdu.model.switched or not switched), table.name


@pytest.mark.parametrize("who", WAYS.values(), ids=WAYS)
def test_several_are_written_and_read_back(served: ServedPdu, who: tuple[str, ...]) -> None:
    place = f"rack1 by {who[0]}"
    written = ask(served, "snmpset", who, name(LOCATION), "s", place, name(NEAR.at(2)), "i", "11")
    assert values(written) == {name(LOCATION): f'"{place}"', name(NEAR.at(2)): "11"}
    assert values(ask(served, "snmpget", who, name(LOCATION), name(NEAR.at(2)))) == values(written)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((name(NEAR.at(1)), "s", "12"), "wrongType"),
        ((name(NEAR.at(1)), "i", "17"), "wrongValue"),
        ((name(NEAR.at(7)), "i", "12"), "noCreation"),
        ((name(mib.BANK_STATUS["Current"].at(1)), "i", "1"), "notWritable"),
        ((name(mib.BANK_CONFIG["LowLoadCurrentThreshold"].at(1)), "i", "16"), "inconsistentValue"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refusal_is_named_and_nothing_written(served: ServedPdu, change: tuple[str, ...], reason: str) -> None:
    before = values(ask(served, "snmpget", V3, name(NAME)))
    done = ask(served, "snmpset", V3, name(NAME), "s", "other", *change)
    assert done.returncode != 0
    assert f"Reason: {reason}" in done.stderr
    assert change[0] in done.stderr
    assert values(ask(served, "snmpget", V3, name(NAME))) == before


@pytest.mark.parametrize("who", READERS.values(), ids=READERS)
def test_readers_read_only(served: ServedPdu, who: tuple[str, ...]) -> None:
    assert name(NAME) in values(ask(served, "snmpget", who, name(NAME)))
    assert "Reason: noAccess" in ask(served, "snmpset", who, name(NAME), "s", "other").stderr


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ((*V3, "-u", "nobody"), "Unknown user name"),
        ((*V3, "-A", "another-key"), "Authentication failure"),
        ((*V3, "-X", "another-key"), "Decryption error"),
        ((*V3, "-l", "authNoPriv"), "Unsupported security level"),
        ((*V3, "-l", "noAuthNoPriv"), "Unsupported security level"),
        (("-v2c", "-c", "public", "-t", "0.3"), "Timeout"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_who_may_not_is_kept_out(served: ServedPdu, who: tuple[str, ...], said: str) -> None:
    command = ["snmpget", "-m", "", "-r", "0", "-t", "10", *who, f"{served.server.host}:{served.port}", name(NAME)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert said in done.stderr


def test_outlets_are_switched(served: ServedPdu) -> None:
    command, state = name(mib.OUTLET_CONTROL["Command"].at(1)), name(mib.OUTLET_STATUS["State"].at(1))
    off = ask(served, "snmpset", V3, command, "i", "2")
    if not served.pdu.model.switched:
        assert "Reason: notWritable" in off.stderr
        return
    assert off.returncode == 0
    assert values(ask(served, "snmpget", V3, state)) == {state: "1"}
    assert ask(served, "snmpset", V3, command, "i", "1").returncode == 0
    assert values(ask(served, "snmpget", V3, state)) == {state: "2"}
