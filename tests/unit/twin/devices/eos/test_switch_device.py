# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop of a switch of a rack with its two endpoints."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from openipu.process.failures import EndpointError
from openipu.twin.devices.eos.managed import ManagedSwitch
from openipu.twin.devices.eos.switch import Switch
from openipu.twin.devices.rack_switch import SwitchDevice
from openipu.twin.devices.snmp.server import Server as SnmpServer
from openipu.twin.devices.snmp.users import Credentials
from tests.ports import free_port, is_free
from tests.unit.twin.devices.eos.switch_lines import MANAGEMENT, Plugged

HOST, DATAGRAM = "127.82.0.10", socket.SOCK_DGRAM


class Device(SwitchDevice):
    """Switch with free ports."""

    def __init__(self, folder: Path) -> None:
        self.ports = free_port(HOST), free_port(HOST, DATAGRAM)
        super().__init__("tor1", MANAGEMENT, HOST, 8, *self.ports, cabling=Plugged({}), folder=folder)

    def is_closed(self) -> bool:
        return not self.running and is_free(HOST, self.ports[0]) and is_free(HOST, self.ports[1], DATAGRAM)


def check_start(device: Device) -> None:
    async def scenario() -> None:
        await device.start()
        assert device.running
        assert not is_free(HOST, device.ports[0]) and not is_free(HOST, device.ports[1], DATAGRAM)
        await device.stop()
        assert device.is_closed()

    asyncio.run(scenario())


@pytest.mark.parametrize("place", [0, 1], ids=["eapi", "snmp"])
def test_an_occupied_port_leaves_no_endpoint_open(tmp_path: Path, place: int) -> None:
    device = Device(tmp_path)
    with socket.socket(type=(socket.SOCK_STREAM, DATAGRAM)[place]) as taken:
        taken.bind((HOST, device.ports[place]))
        if place == 0:
            taken.listen()
        with pytest.raises(EndpointError, match=f"cannot listen on {HOST}:{device.ports[place]}"):
            asyncio.run(device.start())
    assert device.is_closed()
    check_start(device)


@pytest.mark.parametrize(
    ("owner", "method"),
    [(Switch, "count_boot"), (Switch, "write_state"), (SnmpServer, "prepare")],
    ids=["state", "eapi", "snmp"],
)
def test_a_failed_start_leaves_no_endpoint_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    device = Device(tmp_path)

    def fail(self: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(owner, method, fail)
        with pytest.raises((OSError, EndpointError), match="No space left on device"):
            asyncio.run(device.start())
    assert device.is_closed()
    check_start(device)


def test_the_eapi_stops_when_the_agent_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(tmp_path)
    close = SnmpServer.close

    async def fail(self: SnmpServer) -> None:
        await close(self)
        raise OSError("broken")

    async def scenario() -> None:
        await device.start()
        monkeypatch.setattr(SnmpServer, "close", fail)
        with pytest.raises(OSError, match="broken"):
            await device.stop()
        assert device.is_closed()

    asyncio.run(scenario())


def test_credentials_that_failed_are_applied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(tmp_path)

    def fail(self: SnmpServer, credentials: Credentials, wrong: bool) -> None:
        raise ValueError("invalid")

    async def scenario() -> None:
        with socket.socket(type=DATAGRAM) as sock:
            sock.bind((HOST, 0))
            agent = SnmpServer(ManagedSwitch(device.switch), sock)
            with monkeypatch.context() as failing:
                failing.setattr(SnmpServer, "_configure", fail)
                for _ in range(2):  # no attempt counts as applied
                    with pytest.raises(ValueError, match="invalid"):
                        agent.prepare()
            agent.prepare()
            await agent.close()

    asyncio.run(scenario())
