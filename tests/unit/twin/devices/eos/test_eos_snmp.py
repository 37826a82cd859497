# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP objects and credentials of a switch: one state with its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openipu.shared.pdu.mib import SYSTEM_GROUP
from openipu.shared.pdu.smi import Column
from openipu.twin.cables.switch_cabling import Neighbour
from openipu.twin.devices.eos.managed import ManagedSwitch
from openipu.twin.devices.eos.snmp_objects import index_of
from openipu.twin.devices.eos.switch import Switch
from openipu.twin.devices.snmp.agent import AbsentValue, Agent
from openipu.twin.devices.snmp.if_mib import INTERFACE_COUNT, INTERFACES, INTERFACES_X
from openipu.twin.devices.snmp.users import Community
from tests.unit.twin.devices.eos.switch_lines import DATA, MANAGEMENT, Console

PORTS = {
    "Ethernet7/1": Neighbour("poplar1", lacp=True),
    "Ethernet9/1": Neighbour("b-ipum1", "00:11:22:33:44:55", "eth1"),
    "Ethernet10/1": Neighbour("b-ipum2", "00:11:22:33:44:56", "eth1", up=False),
}


def read(console: Console, column: Column, row: int = 0) -> Any:
    """Return a value, as text where the column names its values."""
    value = Agent(ManagedSwitch(console.switch)).get([column.at(row)])[0].value
    assert not isinstance(value, AbsentValue), column.name
    return column.text(value) if column.names else value


def state(console: Console, port: str) -> tuple[str, str]:
    admin, oper = (read(console, INTERFACES[name], index_of(port)) for name in ("AdminStatus", "OperStatus"))
    return admin, oper


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("Ethernet48", 48),
        ("Ethernet9/1", 9001),
        ("Management1", 999001),
        ("Port-Channel5", 1000005),
        ("Vlan4094", 2004094),
        ("Loopback0", 5000000),
    ],
)
def test_the_index_of_an_interface_follows_from_its_name(name: str, index: int) -> None:
    assert index_of(name) == index


@pytest.mark.parametrize("model", [DATA, MANAGEMENT])
def test_every_interface_has_a_row_of_its_own(model: str) -> None:
    console = Console(model, PORTS if model == DATA else {})
    console.configure("interface Vlan11", "interface Port-Channel5", "interface Loopback0")
    names = list(console.switch.forwarding.interfaces)
    assert read(console, INTERFACE_COUNT) == len(names) == len({index_of(name) for name in names})
    assert [read(console, INTERFACES_X["Name"], index_of(name)) for name in names] == names


def test_states_follow_links_and_configuration() -> None:
    console = Console(ports=PORTS)
    assert state(console, "Ethernet9/1") == ("up", "up")
    assert state(console, "Ethernet10/1") == ("up", "down")  # its machine has no power
    assert state(console, "Ethernet11/1") == ("up", "notPresent")  # no cable
    console.configure("interface Ethernet9/1", "shutdown", "interface Ethernet7/1", "channel-group 5 mode active")
    assert state(console, "Ethernet9/1") == ("down", "down")
    assert state(console, "Port-Channel5") == ("up", "up")
    console.configure("interface Ethernet7/1", "shutdown")
    assert state(console, "Port-Channel5") == ("up", "lowerLayerDown")


def test_counters_are_those_of_the_command_line() -> None:
    console = Console(ports=PORTS)
    console.configure("interface Ethernet7/1", "channel-group 5 mode active")
    console.clock.now += 86400
    for name in ("Ethernet7/1", "Ethernet9/1", "Port-Channel5", "Ethernet11/1"):
        shown = console.cli.run(f"show interfaces {name}", as_json=True)["interfaces"][name]
        counters, row = shown["interfaceCounters"], index_of(name)
        for column, key in (
            (INTERFACES_X["HCInOctets"], "inOctets"),
            (INTERFACES_X["HCOutOctets"], "outOctets"),
            (INTERFACES_X["HCInMulticastPkts"], "inMulticastPkts"),
            (INTERFACES_X["HCOutMulticastPkts"], "outMulticastPkts"),
            (INTERFACES["InErrors"], "totalInErrors"),
            (INTERFACES["OutDiscards"], "outDiscards"),
        ):
            assert read(console, column, row) == counters[key], (name, column.name)
        assert read(console, INTERFACES_X["HighSpeed"], row) == shown["bandwidth"] // 10**6
        assert read(console, INTERFACES["PhysAddress"], row).hex(":") == shown["physicalAddress"]
    assert read(console, INTERFACES_X["HCOutOctets"], index_of("Ethernet9/1")) > 0


def test_the_last_change_is_the_uptime_at_that_time() -> None:
    console = Console(ports=PORTS)
    console.clock.now += 60
    console.configure("interface Ethernet9/1", "shutdown")
    console.clock.now += 60
    assert read(console, INTERFACES["LastChange"], index_of("Ethernet9/1")) == 6000
    assert read(console, SYSTEM_GROUP["UpTime"]) == 12000


def test_the_system_group_follows_the_configuration() -> None:
    console = Console()
    console.configure("hostname other", "snmp-server location row 3", "snmp-server contact Ops")
    assert [read(console, SYSTEM_GROUP[name]) for name in ("Name", "Location", "Contact")] == ["other", "row 3", "Ops"]
    assert read(console, SYSTEM_GROUP["Descr"]).endswith("running on an Arista Networks DCS-7060CX-32S")


def test_credentials_and_the_agent_follow_the_configuration() -> None:
    console = Console()
    device = ManagedSwitch(console.switch)
    assert not device.listening  # EOS starts the agent with the first user or community
    console.configure("snmp-server community read ro", "snmp-server group readers v3 priv")
    assert device.credentials.communities == (Community("read"),)
    assert device.listening
    console.configure(
        "snmp-server user ours readers v3 auth sha authentic-key priv aes encryption-key",
        "snmp-server user plain readers v3 auth sha authentic-key",  # no encryption
        "snmp-server user lost absent v3 auth sha authentic-key priv aes encryption-key",  # no such group
        "snmp-server user short readers v3 auth sha authentic-key priv aes256 encryption-key",  # SHA is too short
        "snmp-server user old readers v2c",
    )
    (user,) = device.credentials.users
    assert (user.name, user.auth, user.priv, user.localized, user.write) == ("ours", "sha", "aes", True, False)
    console.configure("no snmp-server user ours readers v3", "no snmp-server community read")
    assert not device.listening
    console.configure("snmp-server community read ro", "interface Management1", "shutdown")
    assert not device.listening  # its address is gone


@pytest.mark.parametrize(
    "user",
    [
        f"snmp-server user {'n' * 33} readers v3 auth sha authentic-key priv aes encryption-key",
        f"snmp-server user u readers v3 localized f5717f auth sha not-hexadecimal priv aes {'ab' * 16}",
        f"snmp-server user u readers v3 localized f5717f auth sha {'ab' * 20} priv aes not-hexadecimal",
        f"snmp-server user u readers v3 localized f5717f auth sha ab priv aes {'ab' * 16}",
        f"snmp-server user u readers v3 other f5717f auth sha {'ab' * 20} priv aes {'ab' * 16}",
    ],
)
def test_users_that_cannot_log_in_are_ignored(user: str) -> None:
    console = Console()
    console.configure("snmp-server group readers v3 priv", user)
    console.configure("snmp-server user ours readers v3 auth sha authentic-key priv aes encryption-key")
    assert [found.name for found in ManagedSwitch(console.switch).credentials.users] == ["ours"]


def test_the_engine_depends_on_the_mac_only() -> None:
    console = Console()
    engine = ManagedSwitch(console.switch).engine_id
    console.configure("snmp-server engineID local 8000000001020304")
    assert ManagedSwitch(console.switch).engine_id == engine


def test_keys_never_appear_in_the_representation_of_credentials() -> None:
    console = Console()
    console.configure("snmp-server community s3cret ro", "snmp-server group readers v3 priv")
    console.configure("snmp-server user ours readers v3 auth sha authentic-key priv aes encryption-key")
    found = ManagedSwitch(console.switch).credentials
    shown = repr(found)
    assert "ours" in shown
    assert not [secret for secret in ("s3cret", found.users[0].auth_key, found.users[0].priv_key) if secret in shown]


def test_starts_are_counted_in_the_state_folder(tmp_path: Path) -> None:
    starts = [ManagedSwitch(Switch("tor1", DATA, state=tmp_path / "tor1")).count_boot() for _ in range(3)]
    assert starts == [1, 2, 3]
