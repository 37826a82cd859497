# SPDX-License-Identifier: GPL-3.0-or-later
"""Rack twin: all machines, their cables and devices, in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openipu.process.limits import raise_file_limit
from openipu.shared.pod.topology import Layout
from openipu.twin.cables.wiring import Wiring
from openipu.twin.machine.hardware import TwinHardware, serial_for
from openipu.twin.machine.machine import Machine, MachineSpec
from openipu.twin.rack.faults import RackFaults
from openipu.vipu.agent.server import AgentServer
from openipu.vipu.domain.model import Topology
from openipu.vipu.metrics.address import MetricsAddress
from openipu.vipu.tls.load import ServerCredentials

if TYPE_CHECKING:  # a rack without such devices does not load their libraries
    from openipu.twin.devices.rack_devices import RackDevices


class Rack:
    """All machines and their cables. ``await rack.faults.apply("unplug ag03:7")`` applies a fault."""

    def __init__(
        self,
        machines: Sequence[MachineSpec],
        *,
        topology: Topology = Topology.MESH,
        ilds: int = 1,
        bring_up: float = 0.0,
        announce_interfaces: Sequence[str] = (),
        credentials: ServerCredentials | None = None,
    ) -> None:
        """Create the machines and their cables. Raises ValueError for machines that do not form a rack."""
        _check(machines, ilds)
        self.wiring = Wiring()
        self.wiring.connect(Layout(len(machines) // ilds, ilds, topology), [spec.agent_id for spec in machines])
        self.machines: dict[str, Machine] = {}
        self.devices: RackDevices | None = None
        self.faults = RackFaults(self.machines, self.wiring)
        for spec in machines:
            hardware = TwinHardware(
                spec.host,
                spec.rnic_address or spec.host,
                spec.serial or serial_for(spec.agent_id),
                bring_up=bring_up,
                agent_id=spec.agent_id,
                wiring=self.wiring,
            )
            metrics = None if spec.metrics_port is None else MetricsAddress(spec.host, spec.metrics_port)
            server = AgentServer(hardware, spec.host, spec.port, credentials, metrics)
            self.machines[spec.agent_id] = Machine(spec.agent_id, hardware, server, announce_interfaces)

    def merge(self, other: Rack) -> None:
        """Add the machines and cables of another rack. Raises ValueError for an id in both racks."""
        for id in self.machines.keys() & other.machines.keys():
            raise ValueError(f"two machines have the id {id!r}. Rename one.")
        self.machines |= other.machines
        self.wiring.merge(other.wiring)
        for machine in other.machines.values():
            machine.hardware.use_wiring(self.wiring)

    def install_devices(self, config: Mapping[str, Any], folder: Path) -> None:
        """Add switches and PDUs, which keep their state in ``folder``. Raises KeyError, TypeError or ValueError."""
        from openipu.twin.devices.rack_devices import RackDevices

        self.devices = self.faults.devices = RackDevices(config, folder, self.machines)

    async def start(self) -> None:
        """Start everything, or nothing after a failure. Raises OSError or TlsError with a one-line message."""
        raise_file_limit()
        try:
            for machine in self.machines.values():
                await machine.start()
            if self.devices:
                await self.devices.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all machines and devices."""
        if self.devices:
            await self.devices.stop()
        await asyncio.gather(*(machine.stop() for machine in self.machines.values()))


def _check(machines: Sequence[MachineSpec], ilds: int) -> None:
    if not machines:
        raise ValueError("a rack needs at least one machine. Add machines.")
    if ilds < 1 or len(machines) % ilds:
        raise ValueError(
            f"{len(machines)} machines cannot be divided evenly into {ilds} IPU-Link domains. Change ilds."
        )
    ids: set[str] = set()
    endpoints: dict[tuple[str, int], str] = {}
    for spec in machines:
        if spec.agent_id in ids:
            raise ValueError(f"two machines have the id {spec.agent_id!r}. Rename one.")
        ids.add(spec.agent_id)
        other = endpoints.setdefault((spec.host, spec.port), spec.agent_id)
        if spec.port and other != spec.agent_id:
            raise ValueError(
                f"machines {other!r} and {spec.agent_id!r} share the endpoint {spec.host}:{spec.port}. Change a port."
            )
