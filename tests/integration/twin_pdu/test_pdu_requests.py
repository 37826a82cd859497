# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the agent of a PDU: walks, writes, errors, concurrency, and invalid datagrams."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import pytest
from pysnmp.proto.rfc1902 import Counter32, Counter64, Gauge32, Integer32, IpAddress, OctetString, TimeTicks
from pysnmp.proto.rfc1905 import NoSuchInstance, NoSuchObject

from openipu.shared.pdu import mib
from openipu.shared.pdu.smi import Oid
from openipu.twin.devices.snmp.errors import Status
from tests.integration.pdu_agents import HOST, READS, WITH_V2C, WRITES, Agents, ServedPdu, agents_of_pdus
from tests.integration.twin_pdu.snmp_manager import Manager, community, user

NAME, CONTACT = mib.DEVICE_CONFIG["Name"].at(1), mib.DEVICE_CONFIG["Contact"].at(1)
PHASE, BANK = mib.PHASE_CONFIG["NearOverloadCurrentThreshold"], mib.BANK_CONFIG["NearOverloadCurrentThreshold"]
ADDRESS = mib.TRAP_RECEIVERS["receiverAddr"].at(1)
OUTLET, COMMAND = mib.OUTLET_CONFIG["Name"].at(1), mib.OUTLET_CONTROL["Command"].at(1)
MOVING = (Counter32, Counter64, TimeTicks)
Metered = tuple[ServedPdu, Manager]


@pytest.fixture(scope="module")
def metered() -> Iterator[Metered]:
    """Return a shared PDU for tests that do not change it."""
    with agents_of_pdus() as agents:
        served = agents.pdu()
        with Manager(served.port, user()) as manager:
            yield served, manager


@pytest.mark.parametrize("model", ["AP8886", "AP8953"])
def test_a_walk_finds_everything_once_and_in_order(agents: Agents, model: str) -> None:
    served = agents.pdu(model=model)
    with Manager(served.port, user()) as manager:
        found = dict(manager.walk())
        assert list(found) == sorted(found)
        oids = list(found)
        alone = {oid: value for i in range(0, len(oids), 8) for oid, value in manager.get(*oids[i : i + 8]).values}
    assert list(alone) == oids
    assert {oid: value for oid, value in alone.items() if not isinstance(value, MOVING)} == {
        oid: value for oid, value in found.items() if not isinstance(value, MOVING)
    }
    assert (mib.OUTLET_STATUS["State"].at(24) in found) == (model == "AP8953")
    for table in mib.TABLES:
        rows = {oid[-1] for oid in found if oid[: len(table.entry)] == table.entry}
        assert rows == set(range(1, len(rows) + 1))


def test_get_bulk_fills_one_datagram(metered: Metered) -> None:
    _served, manager = metered
    response = manager.get_bulk(1, 500, mib.SYSTEM, mib.RPDU2)
    assert 20 < len(response.values) < 500
    first, *others = [oid for oid, _value in response.values]
    assert first == mib.SYSTEM_GROUP["Descr"].at()
    assert others == sorted(others)
    assert others[0] == mib.TABLE_SIZES["IdentTableSize"].at()
    assert manager.get_bulk(1, 0, mib.SYSTEM, mib.RPDU2).values == response.values[:1]


def test_a_response_that_does_not_fit_is_too_big(metered: Metered) -> None:
    _served, manager = metered
    long = [mib.IDENT["LongDescription"].at(1)] * 40
    assert manager.get(*long).status == Status.TOO_BIG
    assert manager.get(*long[:5]).status == 0


def test_a_missing_row_differs_from_a_missing_column(metered: Metered) -> None:
    _served, manager = metered
    no_row, no_column = manager.get(BANK.at(7), OUTLET).values
    assert isinstance(no_row[1], NoSuchInstance)
    assert isinstance(no_column[1], NoSuchObject)


def test_several_variables_are_written_in_one_request(agents: Agents) -> None:
    values = [(NAME, OctetString("left")), (PHASE.at(2), Integer32(0)), (ADDRESS, IpAddress("10.1.3.101"))]
    served = agents.pdu()
    with Manager(served.port, user()) as manager:
        assert manager.set(*values).status == 0
        assert manager.get(*(oid for oid, _value in values)).values == values
    assert served.requests["set"] == 1


@pytest.mark.parametrize(
    ("oid", "value", "status"),
    [
        (PHASE.at(1), OctetString("20"), Status.WRONG_TYPE),
        (PHASE.at(1), Gauge32(20), Status.WRONG_TYPE),
        (NAME, Integer32(1), Status.WRONG_TYPE),
        (PHASE.at(1), Integer32(33), Status.WRONG_VALUE),
        (PHASE.at(1), Integer32(-1), Status.WRONG_VALUE),
        (mib.DEVICE_CONFIG["ColdstartDelay"].at(1), Integer32(301), Status.WRONG_VALUE),
        (mib.DEVICE_CONFIG["DisplayOrientation"].at(1), Integer32(3), Status.WRONG_VALUE),
        (NAME, OctetString("rack\x07"), Status.WRONG_VALUE),
        (NAME, OctetString(b"r\xc3\xa4ck"), Status.WRONG_VALUE),
        (NAME, OctetString("x" * 256), Status.WRONG_LENGTH),
        (mib.PHASE_CONFIG["LowLoadCurrentThreshold"].at(1), Integer32(27), Status.INCONSISTENT_VALUE),
        (mib.PHASE_STATUS["Current"].at(1), Integer32(1), Status.NOT_WRITABLE),
        (PHASE.at(4), Integer32(20), Status.NO_CREATION),
        (OUTLET, OctetString("x"), Status.NOT_WRITABLE),  # a metered model
        (COMMAND, Integer32(1), Status.NOT_WRITABLE),
        (mib.PHASE_CONFIG["OverloadRestriction"].at(1), Integer32(1), Status.NOT_WRITABLE),
        ((1, 3, 6, 1, 4, 1, 9), Integer32(1), Status.NOT_WRITABLE),
    ],
)
def test_an_error_names_its_variable_and_changes_nothing(metered: Metered, oid: Oid, value: Any, status: int) -> None:
    served, manager = metered
    before = served.do(lambda: asdict(served.pdu.settings))
    response = manager.set((CONTACT, OctetString("hall1")), (oid, value), (BANK.at(6), Integer32(9)))
    assert (response.status, response.index) == (status, 2)
    assert served.do(lambda: asdict(served.pdu.settings)) == before


def test_writing_a_command_switches_an_outlet(agents: Agents) -> None:
    served = agents.pdu(model="AP8953", watts={1: 230.0, 2: 460.0})
    state, bank = mib.OUTLET_STATUS["State"], mib.BANK_STATUS["Current"].at(1)
    with Manager(served.port, user()) as manager:
        assert [int(value) for _oid, value in manager.get(state.at(1), COMMAND, bank).values] == [2, 1, 31]
        assert manager.set((COMMAND, Integer32(2))).status == 0
        assert [int(value) for _oid, value in manager.get(state.at(1), COMMAND, bank).values] == [1, 2, 20]
        assert manager.set((COMMAND, Integer32(4))).status == Status.WRONG_VALUE


def test_meters_follow_the_loads(agents: Agents) -> None:
    served = agents.pdu(watts={1: 1000.0})
    power, current = mib.DEVICE_STATUS["Power"].at(1), mib.BANK_STATUS["Current"]
    with Manager(served.port, user()) as manager:
        for watts, expected in (({1: 1000.0}, [100, 44, 0]), ({1: 500.0, 42: 250.0}, [75, 22, 11]), ({}, [0, 0, 0])):
            served.set_loads(watts)
            assert [int(value) for _oid, value in manager.get(power, current.at(1), current.at(6)).values] == expected


def test_two_concurrent_managers(agents: Agents) -> None:
    served = agents.pdu(credentials=WITH_V2C)

    def work(credentials: Any, variable: Oid) -> list[bytes]:
        with Manager(served.port, credentials) as manager:
            found = []
            for number in range(10):
                assert manager.set((variable, OctetString(f"{number}"))).status == 0
                found.append(bytes(manager.get(variable).values[0][1]))
            return found

    with ThreadPoolExecutor(2) as pool:
        works = [pool.submit(work, user(), NAME), pool.submit(work, community(WRITES), CONTACT)]
        for each in works:
            assert each.result() == [b"%d" % number for number in range(10)]


def garbage(served: ServedPdu) -> list[bytes]:
    """Return invalid datagrams: truncated and corrupted requests, and other bytes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind((HOST, 0))
        with Manager(listener.getsockname()[1], community(READS), timeout=0.1) as manager:
            manager.get(NAME)
        request = listener.recv(2000)
    truncated = [request[:length] for length in range(len(request))]
    corrupted = [
        request[:place] + bytes([request[place] ^ 0xFF]) + request[place + 1 :] for place in range(len(request))
    ]
    return [
        *truncated,
        *corrupted,
        b"\0" * 1400,
        b"\xff" * 1400,
        b"0\x84\xff\xff\xff\xff",
        b"GET / HTTP/1.0\r\n\r\n",
        b"garbage",
    ]


def test_invalid_datagrams_are_ignored(agents: Agents) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for datagram in garbage(served):
            sender.sendto(datagram, (HOST, served.port))
    with Manager(served.port, user()) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"


def test_the_faults_rejecting_and_slow(agents: Agents) -> None:
    served = agents.pdu(credentials=WITH_V2C)
    with Manager(served.port, community(READS), timeout=0.3) as manager:
        served.fault(rejecting=True)
        assert "before timeout" in manager.get(NAME).error
        served.fault(slow=3.0)
        assert "before timeout" in manager.get(NAME).error
    with Manager(served.port, community(READS)) as manager:
        assert bytes(manager.get(NAME).values[0][1]) == b"pdu1"
