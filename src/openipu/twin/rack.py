# SPDX-License-Identifier: GPL-3.0-or-later
"""The IPU-Machines of a rack twin: their agents, each on an end-point of its own, in one process.

``python -m openipu.twin.rack --config FILE --socket PATH`` runs them until SIGTERM or SIGINT. The
configuration is JSON:

    {"topology": "torus", "ilds": 1, "machines": [
        {"agent_id": "ag01", "host": "127.2.1.1", "port": 8080, "rnic_address": "127.5.1.1", "serial": "8203921-0001"}
    ]}

``machines`` stand in the order of the cluster: the lowest in the rack first, IPU-Link domain by
domain. ``port`` (8080), ``rnic_address`` (the host), ``serial`` (made from the id) and ``metrics_port``
(none: no metrics) may be left out, and so may at the top level ``topology`` (mesh), ``ilds`` (1),
``bring_up_seconds`` (0: how long it takes to bring up a share), ``announce_interfaces`` (none: where
presence is multicast) and the paths ``tls_ca``, ``tls_certificate``, ``tls_key``. Several clusters, each
cabled in itself, stand as a list ``clusters`` of mappings with ``topology``, ``ilds`` and ``machines``.
Under ``devices`` stand switches and PDUs, as ``openipu.twin.racked`` writes them; they keep their state in
the folder ``devices`` beside the file. When the socket answers, all of them listen.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import grpc
import structlog
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import Layout

from openipu.limits import raise_file_limit
from openipu.twin.control import ControlServer
from openipu.twin.faults import Faults
from openipu.twin.hardware import TwinHardware, serial_for
from openipu.twin.logins import DEVICES
from openipu.twin.wiring import Wiring
from openipu.vipu import tls
from openipu.vipu.agent.presence import Announcer
from openipu.vipu.agent.server import AgentServer, stop_signal
from openipu.vipu.metrics.exporter import Listen
from openipu.vipu.model import DEFAULT_AGENT_PORT, Topology

if TYPE_CHECKING:  # its libraries are loaded for a rack that has such devices
    from openipu.twin.devices import Devices

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin")

_TLS = ("tls_ca", "tls_certificate", "tls_key")


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """One IPU-Machine of the twin; port 0 takes a free one."""

    agent_id: str
    host: str
    port: int = DEFAULT_AGENT_PORT
    rnic_address: str = ""  # empty: the host
    serial: str = ""  # of the board; empty: made from the id
    metrics_port: int | None = None  # on its host; None: it tells none


class Machine:
    """A machine with its agent, as ``ControlServer`` switches it."""

    def __init__(self, id: str, hardware: TwinHardware, server: AgentServer, interfaces: Sequence[str]) -> None:
        """See the class."""
        self.id = id
        self.hardware = hardware
        self.server = server
        self._announcer = Announcer(server.host, lambda: server.port, lambda: hardware.boot_id, interfaces)

    async def start(self) -> None:
        """Start it anew (another boot id, nothing held); nothing happens to one that runs. Raises OSError."""
        if not self.server.running:
            self.hardware.reboot()
            await self.server.start()
            self.hardware.powered = True
            self._announcer.start()

    async def stop(self) -> None:
        """Close its connections and its end-point at once, as a loss of power does."""
        self.hardware.powered = False
        await self._announcer.stop()
        await self.server.stop()


class Rack:
    """All machines, their cables, and what can be made wrong with them: ``await rack.faults.do("unplug ag03:7")``."""

    def __init__(
        self,
        machines: Sequence[MachineSpec],
        *,
        topology: Topology = Topology.MESH,
        ilds: int = 1,
        bring_up: float = 0.0,
        announce_interfaces: Sequence[str] = (),
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """Raises ValueError with a sentence for machines that make no rack."""
        _check(machines, ilds)
        self.wiring = Wiring()
        self.wiring.lay(Layout(len(machines) // ilds, ilds, topology), [spec.agent_id for spec in machines])
        self.machines: dict[str, Machine] = {}
        self.devices: Devices | None = None
        self.faults = Faults(self.machines, self.wiring)
        for spec in machines:
            hardware = TwinHardware(
                spec.host,
                spec.rnic_address or spec.host,
                spec.serial or serial_for(spec.agent_id),
                bring_up=bring_up,
                agent_id=spec.agent_id,
                wiring=self.wiring,
            )
            metrics = None if spec.metrics_port is None else Listen(spec.host, spec.metrics_port)
            server = AgentServer(hardware, spec.host, spec.port, credentials, metrics)
            self.machines[spec.agent_id] = Machine(spec.agent_id, hardware, server, announce_interfaces)

    def take(self, other: Rack) -> None:
        """Take the machines of another rack in, cabled as they were there. Raises ValueError for an id of both."""
        for id in self.machines.keys() & other.machines.keys():
            raise ValueError(f"There are two machines {id!r}.")
        self.machines |= other.machines
        self.wiring.take(other.wiring)
        for machine in other.machines.values():
            machine.hardware.rewire(self.wiring)

    def furnish(self, config: Mapping[str, Any], folder: Path) -> None:
        """Put switches and PDUs in, which keep their state in a folder. Raises KeyError, TypeError or ValueError."""
        from openipu.twin.devices import Devices

        self.devices = self.faults.devices = Devices(config, folder, self.machines)

    async def start(self) -> None:
        """Start everything; when one thing cannot be started none stays. Raises OSError or TlsError with a sentence."""
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
        """Stop everything."""
        if self.devices:
            await self.devices.stop()
        await asyncio.gather(*(machine.stop() for machine in self.machines.values()))


def _check(machines: Sequence[MachineSpec], ilds: int) -> None:
    if not machines:
        raise ValueError("A rack has at least one machine.")
    if ilds < 1 or len(machines) % ilds:
        raise ValueError(f"{len(machines)} machines cannot be divided evenly into {ilds} IPU-Link domains.")
    ids: set[str] = set()
    ends: dict[tuple[str, int], str] = {}
    for spec in machines:
        if spec.agent_id in ids:
            raise ValueError(f"There are two machines {spec.agent_id!r}.")
        ids.add(spec.agent_id)
        other = ends.setdefault((spec.host, spec.port), spec.agent_id)
        if spec.port and other != spec.agent_id:
            raise ValueError(f"Machines {other!r} and {spec.agent_id!r} both are at {spec.host}:{spec.port}.")


def load(path: Path) -> Rack:
    """The rack of a configuration file; raises OSError or ValueError with a sentence."""
    try:
        config: dict[str, Any] = json.loads(path.read_text())
        keys = ("topology", "ilds", "machines")
        clusters = config.pop("clusters", None) or [{key: config.pop(key) for key in keys if key in config}]
        options: dict[str, Any] = {
            "bring_up": float(config.pop("bring_up_seconds", 0)),
            "announce_interfaces": tuple(config.pop("announce_interfaces", ())),
        }
        if any(name in config for name in _TLS):
            ca, certificate, key = (Path(config.pop(name)) for name in _TLS)
            options["credentials"] = tls.mutual(ca, certificate, key)
        devices = config.pop("devices", None)
        if config:
            raise ValueError(f"there is no setting {sorted(config)[0]!r}")
        return _join([_cluster(entry, options) for entry in clusters], devices, path.parent / DEVICES)
    except KeyError as error:
        raise ValueError(f"Cannot read the rack in {path}: {error} is missing.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"Cannot read the rack in {path}: {error}.") from None


def _join(racks: Sequence[Rack], devices: Mapping[str, Any] | None, folder: Path) -> Rack:
    """One rack of all their machines, and the devices that stand there."""
    for other in racks[1:]:
        racks[0].take(other)
    if devices:
        racks[0].furnish(devices, folder)
    return racks[0]


def _cluster(entry: Mapping[str, Any], options: Mapping[str, Any]) -> Rack:
    unknown = set(entry) - {"topology", "ilds", "machines"}
    if unknown:
        raise ValueError(f"a cluster has no {sorted(unknown)[0]!r}")
    return Rack(
        [_machine(machine) for machine in entry["machines"]],
        topology=Topology(entry.get("topology", Topology.MESH)),
        ilds=int(entry.get("ilds", 1)),
        **options,
    )


def _machine(entry: Mapping[str, Any]) -> MachineSpec:
    unknown = set(entry) - {field.name for field in fields(MachineSpec)}
    if unknown:
        raise ValueError(f"a machine has no {sorted(unknown)[0]!r}")
    return MachineSpec(
        agent_id=str(entry["agent_id"]),
        host=str(entry["host"]),
        port=int(entry.get("port", DEFAULT_AGENT_PORT)),
        rnic_address=str(entry.get("rnic_address", "")),
        serial=str(entry.get("serial", "")),
        metrics_port=None if entry.get("metrics_port") is None else int(entry["metrics_port"]),
    )


async def _run(path: Path, socket: Path) -> None:
    rack = load(path)
    await rack.start()
    control = ControlServer(rack, socket)
    try:
        await control.start()
        _log.info("rack is up", machines=len(rack.machines), devices=bool(rack.devices), control=str(socket))
        await stop_signal()
    finally:
        await control.stop()
        await rack.stop()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", required=True, type=click.Path(path_type=Path), help="The rack, JSON.")
@click.option("--socket", required=True, type=click.Path(path_type=Path), help="Where run-time control listens.")
def main(config: Path, socket: Path) -> None:
    """Run the IPU-Machines of a rack twin until they are told to stop (SIGTERM, SIGINT)."""
    try:
        asyncio.run(_run(config, socket))
    except (OSError, ValueError, tls.TlsError) as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
