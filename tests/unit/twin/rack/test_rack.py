# SPDX-License-Identifier: GPL-3.0-or-later
"""Racks from configuration files, and their cabling."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from openipu.shared.pod.topology import Layout
from openipu.twin.machine.machine import MachineSpec
from openipu.twin.rack.config_file import load
from openipu.twin.rack.rack import Rack
from openipu.vipu.domain.model import Topology


def specs(count: int) -> list[MachineSpec]:
    return [MachineSpec(f"ag{number}", f"127.82.0.{number + 1}", 0) for number in range(count)]


def serials(rack: Rack) -> Counter[str]:
    async def read() -> Counter[str]:
        found: Counter[str] = Counter()
        for machine in rack.machines.values():
            found.update(port.serial for port in await machine.hardware.cables() if port.serial)
        return found

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("count", "ilds", "topology"), [(8, 1, Topology.MESH), (16, 1, Topology.TORUS), (8, 4, Topology.MESH)]
)
def test_every_cable_has_the_same_serial_id_at_both_ends(count: int, ilds: int, topology: Topology) -> None:
    found = serials(Rack(specs(count), ilds=ilds, topology=topology))
    assert len(found) == sum(1 for _ in Layout(count // ilds, ilds, topology).cables())
    assert set(found.values()) == {2}


def test_an_invalid_rack_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one machine"):
        Rack([])
    with pytest.raises(ValueError, match="divided evenly"):
        Rack(specs(3), ilds=2)
    with pytest.raises(ValueError, match="two machines have the id 'ag0'"):
        Rack([*specs(1), *specs(1)])
    with pytest.raises(ValueError, match=r"'a' and 'b' share the endpoint 127\.0\.0\.1:8080\."):
        Rack([MachineSpec("a", "127.0.0.1"), MachineSpec("b", "127.0.0.1")])


def test_a_restarted_machine_listens_on_the_same_port() -> None:
    async def scenario() -> None:
        rack = Rack(specs(2))
        await rack.start()
        try:
            machine = rack.machines["ag0"]
            port, boot_id = machine.server.port, machine.hardware.boot_id
            assert port > 0
            await machine.start()
            assert machine.hardware.boot_id == boot_id, "a running machine is not restarted"
            await machine.stop()
            assert not machine.server.running
            await machine.start()
            assert machine.server.port == port
            assert machine.hardware.boot_id != boot_id
        finally:
            await rack.stop()

    asyncio.run(scenario())


def test_a_port_in_use_is_an_error_and_stops_the_whole_rack() -> None:
    async def scenario(port: int) -> None:
        rack = Rack([*specs(1), MachineSpec("taken", "127.82.0.9", port)])
        with pytest.raises(OSError, match=f"Cannot listen on 127.82.0.9:{port}: another program"):
            await rack.start()
        assert not any(machine.server.running for machine in rack.machines.values())

    with socket.create_server(("127.82.0.9", 0)) as taken:
        asyncio.run(scenario(taken.getsockname()[1]))


def test_reading_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "rack.json"
    entry = {"agent_id": "ag01", "host": "127.2.1.1", "rnic_address": "127.5.1.1", "serial": "1-1"}
    path.write_text(json.dumps({"topology": "torus", "bring_up_seconds": 0.5, "machines": [entry]}))
    machine = load(path).machines["ag01"]
    assert (machine.server.host, machine.server.port) == ("127.2.1.1", 8080)
    assert (machine.hardware.rnic_address, machine.hardware.serial) == ("127.5.1.1", "1-1")
    assert machine.hardware.bring_up == 0.5


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "Cannot read the rack in"),
        ([], "Cannot read the rack in"),
        ({}, "'machines' is missing"),
        ({"machines": [{"agent_id": "a"}]}, "'host' is missing"),
        ({"machines": [{"agent_id": "a", "host": "h", "mac": "x"}]}, "unknown key 'mac' in a machine."),
        ({"machines": [{"agent_id": "a", "host": "h"}], "colour": 1}, "unknown setting 'colour'."),
        ({"machines": [{"agent_id": "a", "host": "h"}], "topology": "star"}, "'star' is not a valid Topology"),
        ({"machines": []}, "at least one machine"),
    ],
)
def test_an_invalid_configuration_gives_a_one_line_message(tmp_path: Path, config: Any, message: str) -> None:
    path = tmp_path / "rack.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    with pytest.raises(ValueError, match="Cannot read the rack in") as error:
        load(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
