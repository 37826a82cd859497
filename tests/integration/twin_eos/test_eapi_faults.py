# SPDX-License-Identifier: GPL-3.0-or-later
"""Test faults, commits and restarts of the twin of an EOS switch."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pyeapi.eapilib import CommandError, ConnectionError

from tests.integration.eos_switches import Rack, ServedSwitch
from tests.integration.twin_eos.eapi_support import show
from tests.waiting import until


def test_a_port_in_use(rack: Rack) -> None:
    import asyncio

    from openipu.twin.devices.eos.server import serve

    switch = rack.switch()
    with pytest.raises(OSError, match="in use"):
        asyncio.run(serve(rack.switch("tor2").switch, "127.0.0.1", switch.port, None))


def test_a_slow_switch(switch: ServedSwitch) -> None:
    switch.fault(slow=600)
    with pytest.raises(ConnectionError, match="timed out"):
        show(switch.node(timeout=0.5), "show hostname")
    assert switch.requests == 0
    switch.fault(slow=0.1)
    assert show(switch.node(), "show hostname")["hostname"] == "tor1"


def test_a_switch_that_rejects_connections(switch: ServedSwitch) -> None:
    node = switch.node()
    show(node, "show hostname")
    switch.fault(rejecting=True)
    with pytest.raises(ConnectionError, match=r"Connection refused|reset"):
        show(node, "show hostname")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", switch.port), timeout=5)
    switch.fault()
    assert show(switch.node(), "show hostname")["hostname"] == "tor1"


@pytest.mark.parametrize(("moment", "committed"), [("before", False), ("after", True)])
def test_a_connection_that_breaks_in_a_commit(switch: ServedSwitch, moment: str, committed: bool) -> None:
    switch.fault(drop_commit=moment)
    with pytest.raises(ConnectionError):
        switch.node().run_commands(["configure session a", "vlan 40", "commit"])
    assert ("vlan 40" in switch.config()) == committed
    # The fault is over, so that the session can be committed now.
    if not committed:
        switch.node().run_commands(["configure session a commit"])
        assert "vlan 40" in switch.config()


def test_a_full_session_table(switch: ServedSwitch) -> None:
    switch.fault(full_sessions=True)
    with pytest.raises(CommandError) as rejected:
        switch.node().run_commands(["configure session a", "vlan 40"])
    assert "Maximum number of pending sessions" in str(rejected.value.output)
    switch.fault()
    switch.node().run_commands(["configure session a", "vlan 40", "commit"])
    assert "vlan 40" in switch.config()


def test_a_confirmed_and_an_unconfirmed_commit(switch: ServedSwitch) -> None:
    node = switch.node()
    node.run_commands(["configure session a", "vlan 40", "commit timer 00:00:30"])
    assert "vlan 40" in switch.config()
    assert show(node, "show configuration sessions")["sessions"]["a"]["state"] == "pendingCommitTimer"
    node.run_commands(["configure session a commit"])
    assert switch.sessions() == {"a": "completed"}
    commands = ["configure session b", "no vlan 40", "commit timer 00:00:01", "show running-config"]
    assert "vlan 40" not in node.run_commands(commands)[-1]["cmds"]
    # The rollback needs no request.
    requests = switch.requests
    until(lambda: "vlan 40" in switch.config())
    assert switch.requests == requests
    assert "b" not in switch.sessions()


@pytest.mark.parametrize(
    "commands",
    [
        ["interface Management1", "shutdown"],
        ["interface Management1", "no ip address"],
        ["interface Management1", "ip address 10.9.9.9/24"],
        ["management api http-commands", "shutdown"],
        ["management api http-commands", "no protocol https"],
        ["no management api http-commands"],
    ],
    ids=" ".join,
)
def test_an_unreachable_switch_rolls_back(switch: ServedSwitch, commands: list[str]) -> None:
    before = switch.config()
    with pytest.raises(ConnectionError):
        switch.node(timeout=0.5).run_commands(["configure session a", *commands, "commit timer 00:05:00"])
    until(lambda: switch.config() != before)
    with pytest.raises(ConnectionError):
        show(switch.node(timeout=0.5), "show hostname")

    def expire() -> None:
        switch.switch.sessions.get("a").deadline = switch.switch.clock()
        switch.served.refresh()

    switch.do(expire)
    assert switch.config() == before
    assert show(switch.node(), "show hostname")["hostname"] == "tor1"


def test_a_restart_keeps_the_startup_configuration(rack: Rack, tmp_path: Path) -> None:
    state = tmp_path / "tor1"
    switch = rack.switch(state=state)
    switch.node().run_commands(["configure", "vlan 50", "end", "write memory", "configure", "vlan 60"])
    assert "vlan 50,60" in (state / "running-config").read_text()
    again = rack.switch(state=state)
    assert "vlan 50" in again.config()
