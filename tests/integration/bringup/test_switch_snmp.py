# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP agents of the switches of the rack twin, with real datagrams: links, faults, credentials and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pysnmp.proto.rfc1902 import OctetString

from openipu.shared.pdu.mib import SYSTEM_GROUP
from openipu.twin.devices import logins
from openipu.twin.devices.eos.snmp_objects import index_of
from openipu.twin.devices.snmp.errors import Status
from openipu.twin.devices.snmp.if_mib import INTERFACES, INTERFACES_X
from tests.integration.bringup.rack_with_devices import RackWithDevices
from tests.integration.twin_pdu.snmp_manager import Manager, community, user

SWITCH, PORT = "tor1", "Ethernet9/1"
READER = user(logins.READER, logins.AUTH_KEY, logins.PRIV_KEY)
STATE = INTERFACES["OperStatus"]
NAME = SYSTEM_GROUP["Name"].at()


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[RackWithDevices]:
    made = RackWithDevices(tmp_path, "AP8886")
    yield made
    made.close()


@contextmanager
def manager(rack: RackWithDevices, credentials: Any = READER, timeout: float = 5.0) -> Iterator[Manager]:
    with Manager(logins.SNMP_PORT, credentials, timeout, host=rack.address(SWITCH)) as made:
        yield made


def link(rack: RackWithDevices, port: str = PORT) -> str:
    with manager(rack) as reader:
        response = reader.get(STATE.at(index_of(port)))
    assert not response.error, response
    return STATE.text(int(response.values[0][1]))


def error(rack: RackWithDevices, credentials: Any = READER, timeout: float = 0.5) -> str:
    with manager(rack, credentials, timeout) as reader:
        return reader.get(NAME).error


def test_links_follow_cables_and_power(rack: RackWithDevices) -> None:
    assert link(rack) == "up"
    rack.fault(f"unplug {SWITCH}:{PORT}")
    assert link(rack) == "notPresent"
    rack.fault("heal")
    assert link(rack) == "up"
    rack.fault("stop ag01")  # its network card is in this port
    assert link(rack) == "down"
    rack.fault("start ag01")
    assert link(rack) == "up"


def test_a_walk_returns_every_interface_with_its_description(rack: RackWithDevices) -> None:
    assert rack.configure(SWITCH)
    with manager(rack) as reader:
        found = dict(reader.walk())
    names = {oid[-1]: str(value) for oid, value in found.items() if oid[:-1] == INTERFACES_X["Name"].oid}
    ports = rack.get(lambda: list(rack.rack.devices.switches[SWITCH].switch.forwarding.interfaces))
    assert sorted(names.values()) == sorted(ports)
    assert str(found[INTERFACES_X["Alias"].at(index_of(PORT))]).startswith("ag01")
    assert found[INTERFACES_X["HighSpeed"].at(index_of(PORT))] == 100_000
    assert str(found[NAME]) == SWITCH


def test_faults_of_the_device(rack: RackWithDevices) -> None:
    assert error(rack) == ""
    for fault in (f"reject {SWITCH}", f"login {SWITCH}", f"stop {SWITCH}"):
        rack.fault(fault)
        assert error(rack), fault
        rack.fault(f"heal {SWITCH}")
        assert error(rack, timeout=5.0) == ""
    rack.fault(f"slow {SWITCH} 1")
    assert "timeout" in error(rack).lower()
    assert error(rack, timeout=5.0) == ""


def test_one_manager_survives_a_restart_of_the_switch(rack: RackWithDevices) -> None:
    with manager(rack) as reader:
        assert reader.get(NAME).error == ""
        rack.fault(f"stop {SWITCH}")
        rack.fault(f"start {SWITCH}")
        assert reader.get(NAME).error == ""


def test_only_configured_users_may_read_and_nobody_may_write(rack: RackWithDevices) -> None:
    for wrong in (
        user("other", logins.AUTH_KEY, logins.PRIV_KEY),
        user(logins.READER, "of another user", logins.PRIV_KEY),
        user(logins.READER, logins.AUTH_KEY, None),
        user(logins.READER, None, None),
        community("public"),
    ):
        assert error(rack, wrong)
    with manager(rack) as reader:
        assert reader.set((NAME, OctetString("changed"))).status == Status.NO_ACCESS
        assert str(reader.get(NAME).values[0][1]) == SWITCH
    rack.node(SWITCH).config(["snmp-server community read-only ro"])
    with manager(rack, community("read-only")) as reader:
        assert str(reader.get(NAME).values[0][1]) == SWITCH
        assert reader.set((NAME, OctetString("changed"))).status == Status.NO_ACCESS
    rack.node(SWITCH).config(["no snmp-server community read-only"])
    assert error(rack, community("read-only"))


def test_the_command_line_counts_requests(rack: RackWithDevices) -> None:
    with manager(rack) as reader:
        reader.get(NAME)
        reader.get_next(NAME)
    counters = rack.node(SWITCH).enable("show snmp")[0]["result"]["counters"]
    assert (counters["inGetPdus"], counters["inGetNextPdus"], counters["outGetResponsePdus"]) == (1, 1, 2)
