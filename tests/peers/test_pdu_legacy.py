# SPDX-License-Identifier: GPL-3.0-or-later
"""Legacy rPDU tree and IF-MIB of PDUs of the twin, with Net-SNMP and pysnmp, over SNMPv1, v2c and v3."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pysnmp.hlapi.v3arch import asyncio as snmp

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Column, Oid
from openipu.twin.devices.pdu import legacy_mib
from openipu.twin.devices.snmp import if_mib
from tests.integration.pdu_agents import (
    AUTH_KEY,
    HOST,
    PRIV_KEY,
    READS,
    WITH_V2C,
    WRITER,
    WRITES,
    Agents,
    ServedPdu,
    agents_of_pdus,
)
from tests.peers import pdu_mib
from tests.peers.programs import needs

pytestmark = needs("snmpwalk", "snmpbulkwalk", "snmptable", "snmpget", "snmpset", packages="snmp")
V3 = ("-v3", "-l", "authPriv", "-a", "SHA", "-A", AUTH_KEY, "-x", "AES", "-X", PRIV_KEY, "-u", WRITER)
LOGINS = {"v1": ("-v1", "-c", WRITES), "v2c": ("-v2c", "-c", WRITES), "v3": V3}
WATTS = {1: 1000.0, 8: 230.0, 15: 460.0}
COUNTERS64 = [f"HC{direction}{what}" for direction in ("In", "Out") for what in ("Octets", "UcastPkts")]
ENDS = ("No more variables", "End of MIB", "past the end of the MIB")


@pytest.fixture(scope="module")
def agents() -> Iterator[Agents]:
    with agents_of_pdus() as agents:
        yield agents


@pytest.fixture(scope="module", params=["AP8886", "AP8953"])
def served(request: pytest.FixtureRequest, agents: Agents) -> ServedPdu:
    return agents.pdu("pdu1", request.param, WITH_V2C, WATTS)


@pytest.fixture(scope="module")
def metered(agents: Agents) -> ServedPdu:
    return agents.pdu("pdu2", "AP8886", WITH_V2C, WATTS)


@pytest.fixture
def switched(agents: Agents) -> ServedPdu:
    return agents.pdu("pdu3", "AP8953", WITH_V2C, WATTS)


def dotted(oid: Oid) -> str:
    return "".join(f".{number}" for number in oid)


def run_command(
    served: ServedPdu, login: tuple[str, ...], command: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of Net-SNMP without MIBs, so that it prints numbers."""
    return subprocess.run(
        [command, "-m", "", "-On", "-r", "0", "-t", "10", *login, f"{HOST}:{served.port}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


def variables(result: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """Return type and value of each printed object."""
    assert result.returncode == 0, result.stderr
    found = re.findall(r"^(\.[\d.]+) = (?:([\w-]+): )?(.*)$", result.stdout, re.MULTILINE)
    return {oid: (kind, value.strip('"')) for oid, kind, value in found}


def value(served: ServedPdu, login: tuple[str, ...], column: Column, row: int = 0) -> str:
    oid = dotted(column.at(row))
    return variables(run_command(served, login, "snmpget", oid))[oid][1]


@pytest.mark.parametrize(
    ("command", "version"),
    [("snmpwalk", "v1"), ("snmpwalk", "v2c"), ("snmpbulkwalk", "v2c"), ("snmpwalk", "v3"), ("snmpbulkwalk", "v3")],
)
def test_a_walk_of_the_whole_tree_ends(served: ServedPdu, command: str, version: str) -> None:
    """The commands fail on names that do not increase."""
    result = run_command(served, LOGINS[version], command, ".1")
    found = variables(result)
    names = [tuple(int(number) for number in oid[1:].split(".")) for oid in found]
    assert names == sorted(names)
    assert len(names) > 450
    assert version == "v1" or any(end in result.stdout for end in ENDS)
    kinds = {kind for kind, _value in found.values()}
    assert {"Counter32", "Gauge32", "IpAddress", "OID", "Timeticks"} <= kinds
    wide = {dotted(if_mib.INTERFACES_X[name].at(1)) for name in COUNTERS64}
    # SNMPv1 has no Counter64 (RFC 3584, 4.2.2.1).
    assert wide & found.keys() == (set() if version == "v1" else wide)
    assert ("Counter64" in kinds) == (version != "v1")


def test_snmpv1_has_no_name_for_a_counter64(metered: ServedPdu) -> None:
    oid = dotted(if_mib.INTERFACES_X["HCInOctets"].at(1))
    result = run_command(metered, LOGINS["v1"], "snmpget", oid)
    assert "(noSuchName)" in result.stderr
    assert variables(run_command(metered, LOGINS["v2c"], "snmpget", oid))[oid][0] == "Counter64"


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
def test_phases_and_banks_are_discovered(metered: ServedPdu, login: tuple[str, ...]) -> None:
    """The requests of LibreNMS: phases by their index, then banks if their number is not 0."""
    config, status = legacy_mib.LOAD_PHASE_CONFIG, legacy_mib.LOAD_STATUS
    index = dotted(legacy_mib.STATUS_PHASE["Index"].oid)
    phases = [int(number) for _kind, number in variables(run_command(metered, login, "snmpwalk", index)).values()]
    assert phases == [1, 2, 3]
    limits = ("OverloadThreshold", "LowLoadThreshold", "NearOverloadThreshold")
    found = {
        value(metered, login, status["PhaseNumber"], row): (
            value(metered, login, status["Load"], row),
            *(value(metered, login, config[name], row) for name in limits),
        )
        for row in phases
    }
    assert found == {"1": ("55", "32", "0", "26"), "2": ("20", "32", "0", "26"), "3": ("0", "32", "0", "26")}
    assert value(metered, login, legacy_mib.LOAD_DEVICE["NumBanks"]) == "6"
    rows = variables(run_command(metered, login, "snmpwalk", dotted(status["BankNumber"].oid))).values()
    assert [number for _kind, number in rows] == ["0", "0", "0", "1", "2", "3", "4", "5", "6"]
    assert value(metered, login, legacy_mib.LOAD_BANK_CONFIG["OverloadThreshold"], 6) == "16"


def test_tables(metered: ServedPdu, tmp_path: Path) -> None:
    folder = pdu_mib.write_mib(tmp_path, legacy_mib.LOAD_STATUS, legacy_mib.STATUS_BANK)

    def table(name: str) -> list[list[str]]:
        command = ["snmptable", "-M", folder, "-m", pdu_mib.NAME, "-CH", "-Cf", "|", *LOGINS["v2c"]]
        result = subprocess.run(
            [*command, f"{HOST}:{metered.port}", f"{pdu_mib.NAME}::{name}"], capture_output=True, text=True, timeout=60
        )
        assert result.returncode == 0, result.stderr
        return [line.split("|") for line in result.stdout.splitlines() if line]

    loads = table("rPDULoadStatusTable")
    assert loads[0] == ["1", "55", "1", "1", "0"]
    assert loads[3:6] == [["4", "44", "1", "0", "1"], ["5", "10", "1", "0", "2"], ["6", "20", "1", "0", "3"]]
    assert table("rPDUStatusBankTable") == [[str(number), str(number), "1"] for number in range(1, 7)]


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
def test_a_legacy_command_switches_the_outlet(switched: ServedPdu, login: tuple[str, ...]) -> None:
    command, delay = legacy_mib.OUTLET_CONTROL["OutletCommand"], legacy_mib.OUTLET_CONFIG["PowerOffTime"]
    state, pending = mib.OUTLET_STATUS["State"], mib.OUTLET_STATUS["CommandPending"]

    def write(column: Column, number: int) -> None:
        variables(run_command(switched, login, "snmpset", dotted(column.at(3)), "i", str(number)))

    assert value(switched, login, state, 3) == "2"
    write(command, command.names["immediateOff"])
    assert value(switched, login, state, 3) == "1"
    assert value(switched, login, legacy_mib.OUTLET_STATUS["OutletState"], 3) == "2"
    write(command, command.names["immediateOn"])
    write(delay, 300)
    write(command, command.names["delayedOff"])
    assert (value(switched, login, state, 3), value(switched, login, pending, 3)) == ("2", "1")
    write(mib.OUTLET_CONTROL["Command"], mib.OUTLET_CONTROL["Command"].names["cancelPendingCommand"])
    assert value(switched, login, legacy_mib.OUTLET_STATUS["CommandPending"], 3) == "2"


def test_a_metered_pdu_rejects_outlet_commands(metered: ServedPdu) -> None:
    command = dotted(legacy_mib.OUTLET_CONTROL["OutletCommand"].at(1))
    for login, reason in ((LOGINS["v2c"], "notWritable"), (LOGINS["v1"], "noSuchName")):
        assert reason in run_command(metered, login, "snmpset", command, "i", "2").stderr


def test_counters_of_the_interface_move(metered: ServedPdu) -> None:
    octets, packets = (if_mib.INTERFACES_X[name] for name in ("HCInOctets", "HCOutUcastPkts"))
    before = [int(value(metered, LOGINS["v2c"], column, 1)) for column in (octets, packets)]
    after = [int(value(metered, LOGINS["v2c"], column, 1)) for column in (octets, packets)]
    assert after[0] >= before[0] + 2 * 64
    assert after[1] == before[1] + 2


@pytest.mark.parametrize("version", [0, 1], ids=["v1", "v2c"])
def test_pysnmp_walks_the_legacy_tree(metered: ServedPdu, version: int) -> None:
    async def walk() -> dict[Oid, str]:
        engine = snmp.SnmpEngine()
        target = await snmp.UdpTransportTarget.create((HOST, metered.port), timeout=10, retries=0)
        start = snmp.ObjectType(snmp.ObjectIdentity(dotted(legacy_mib.RPDU)[1:]))
        found = {}
        async for error, status, _index, bindings in snmp.walk_cmd(
            engine,
            snmp.CommunityData(READS, mpModel=version),
            target,
            snmp.ContextData(),
            start,
            lexicographicMode=False,
            lookupMib=False,
        ):
            assert not error and not status
            found |= {tuple(oid): each.prettyPrint() for oid, each in bindings}
        engine.close_dispatcher()
        return found

    found = asyncio.run(walk())
    assert list(found) == sorted(found)
    assert {oid[: len(legacy_mib.RPDU)] for oid in found} == {legacy_mib.RPDU}
    assert found[legacy_mib.IDENT["ModelNumber"].at()] == "AP8886"
    assert found[legacy_mib.LOAD_STATUS["Load"].at(4)] == "44"
    assert legacy_mib.STATUS_SIZES["OutletTableSize"].at() == list(found)[-1]
