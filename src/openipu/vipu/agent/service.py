# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent API of one IPU-Machine: messages on one side, its hardware on the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import structlog
from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind

from openipu.vipu.agent.contract import agent
from openipu.vipu.agent.hardware import (
    Hardware,
    HardwareError,
    LinkState,
    PartitionFault,
    Pulses,
    Share,
    ShareIpu,
)
from openipu.vipu.metrics.catalog import MACHINE
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.model import MOST_PARTITIONS_PER_CALL, Device, GwRouting, Routing, SyncType

DEFAULT_HEARTBEAT = 2000  # milliseconds
SHORTEST_HEARTBEAT = 50
_EXPORTER = "Exporter"  # the fact that says where metrics are told

_log: structlog.stdlib.BoundLogger = structlog.get_logger("virm-agent")


class AgentService:
    """Handlers of ``openipu.vipu.agent.v1.AgentService``; all in one event loop."""

    def __init__(self, hardware: Hardware) -> None:
        """See the class."""
        self._hardware = hardware
        self._changing = asyncio.Lock()  # one change of partitions at a time
        self._revision = 0
        self._revision_of = hardware.boot_id
        self._watchers: set[asyncio.Queue[PartitionFault]] = set()
        self.exporter = "off"  # where metrics of this machine are told, which the hardware cannot know
        self.meters = Meters(MACHINE)
        self._ipu_faults = self.meters.counter("ipum_ipu_faults_total")
        hardware.on_fault(self._tell)

    @property
    def watchers(self) -> int:
        """How many callers follow the events."""
        return len(self._watchers)

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """Heartbeats with what is held, and faults at once, until the caller goes away."""
        interval = max(request.heartbeat_milliseconds or DEFAULT_HEARTBEAT, SHORTEST_HEARTBEAT) / 1000
        queue: asyncio.Queue[PartitionFault] = asyncio.Queue()
        self._watchers.add(queue)
        try:
            faults: list[PartitionFault] = []
            while True:
                yield await self._event(faults)
                faults = await _next_faults(queue, interval)
        finally:
            self._watchers.discard(queue)

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Identity and versions."""
        info = await self._hardware.info()
        return agent.MachineInfo(
            boot_id=self._hardware.boot_id,
            num_ipus=len(info.ipus),
            facts=[
                agent.Fact(name=name, value=self.exporter if name == _EXPORTER else value) for name, value in info.facts
            ],
            ipus=[
                agent.IpuInfo(ipu=ipu, facts=[agent.Fact(name=name, value=value) for name, value in facts])
                for ipu, facts in enumerate(info.ipus)
            ],
            versions=info.versions,
            rnic_address=info.rnic_address,
        )

    async def ListIpuAttributes(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Attributes of all IPUs."""
        reply = agent.ListIpuAttributesReply()
        for ipu, attributes in (await self._hardware.ipu_attributes()).items():
            reply.ipus[ipu].attributes.update(attributes)
        return reply

    async def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Bring up shares one by one; what one of them cannot have does not hold up the others."""
        await _bounded(request.shares, context)
        results = []
        async with self._changing:
            for message in request.shares:
                try:
                    devices = await self._hardware.configure(_share(message), message.reset)
                    results.append(_result(message, devices))
                except (HardwareError, ValueError) as error:
                    _log.warning("share refused", partition=message.partition_id, reason=str(error))
                    results.append(agent.ShareResult(partition_id=message.partition_id, error=str(error)))
            return agent.ConfigureReply(results=results, boot_id=self._hardware.boot_id, revision=self._changed())

    async def Release(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Take partitions off this machine."""
        await _bounded(request.partition_ids, context)
        results = []
        async with self._changing:
            for id in request.partition_ids:
                error = ""
                try:
                    await self._hardware.release(id)
                except HardwareError as refusal:
                    error = str(refusal)
                results.append(agent.ShareResult(partition_id=id, error=error))
            return agent.ReleaseReply(results=results, boot_id=self._hardware.boot_id, revision=self._changed())

    async def ReadCables(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Serial ids of the cables in all chassis ports."""
        return agent.ReadCablesReply(
            ports=[
                agent.CablePort(kind=cable.kind.name, port=cable.port, serial=cable.serial)
                for cable in await self._hardware.cables()
            ]
        )

    async def TrainLinks(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Train links; FAILED_PRECONDITION when the machine cannot."""
        try:
            kinds = {_cable_kind(kind) for kind in request.kinds} or {CableKind.IPU_LINK, CableKind.GW_LINK}
            links = await self._hardware.train_links(kinds)
        except HardwareError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Cannot train the links: {error}.")
        return agent.TrainLinksReply(links=map(_link, links))

    async def ClearSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Forget all sync pulses that arrived."""
        await self._hardware.clear_sync()
        return agent.ClearSyncReply()

    async def PulseSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Send sync pulses; FAILED_PRECONDITION when the machine cannot."""
        try:
            pulses = [Pulses(_cable_kind(item.kind), item.port, item.count) for item in request.ports]
            await self._hardware.pulse_sync(pulses)
        except HardwareError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Cannot send sync pulses: {error}.")
        return agent.PulseSyncReply()

    async def ReadSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        """How many pulses arrived, port by port."""
        reply = agent.ReadSyncReply()
        for item in await self._hardware.read_sync():
            reply.ports.add(kind=item.kind.name, port=item.port, count=item.count)
        return reply

    async def RunTraffic(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Send traffic over IPU-Links; FAILED_PRECONDITION when the machine cannot."""
        try:
            links = await self._hardware.run_traffic(set(request.ports))
        except HardwareError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Cannot run the traffic test: {error}.")
        return agent.RunTrafficReply(links=map(_link, links))

    async def ReadPfc(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Classes with priority flow control on the RNIC."""
        reply = agent.ReadPfcReply()
        for interface, classes in (await self._hardware.pfc_classes()).items():
            reply.interfaces[interface].classes.extend(classes)
        return reply

    def _tell(self, fault: PartitionFault) -> None:
        self._ipu_faults.labels(str(fault.ipu)).inc()
        for queue in self._watchers:
            queue.put_nowait(fault)

    async def _event(self, faults: list[PartitionFault]) -> Any:
        # The revision before the list: an event may be taken for older than it is, never for newer.
        boot_id, revision = self._hardware.boot_id, self._current()
        return agent.AgentEvent(
            boot_id=boot_id,
            partition_ids=await self._hardware.held(),
            revision=revision,
            faults=[
                agent.PartitionFault(partition_id=fault.partition_id, ipu=fault.ipu, reason=fault.reason)
                for fault in faults
            ],
        )

    def _current(self) -> int:
        if self._revision_of != self._hardware.boot_id:
            self._revision_of, self._revision = self._hardware.boot_id, 0
        return self._revision

    def _changed(self) -> int:
        self._revision = self._current() + 1
        return self._revision


async def _next_faults(queue: asyncio.Queue[PartitionFault], interval: float) -> list[PartitionFault]:
    """The faults of the next event: none when an interval passes quietly, else all that are there at once."""
    faults: list[PartitionFault] = []
    try:
        async with asyncio.timeout(interval):
            faults.append(await queue.get())
    except TimeoutError:
        return faults
    while not queue.empty():
        faults.append(queue.get_nowait())
    return faults


async def _bounded(items: Any, context: Any) -> None:
    if len(items) > MOST_PARTITIONS_PER_CALL:
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"One call names at most {MOST_PARTITIONS_PER_CALL} partitions, not {len(items)}.",
        )


def _cable_kind(number: int) -> CableKind:
    """The kind of that number; raises HardwareError for one that this agent does not know."""
    try:
        return CableKind[agent.CablePort.Kind.Name(number)]
    except (KeyError, ValueError):
        raise HardwareError(f"it has no cables of kind {number}") from None


def _link(state: LinkState) -> Any:
    return agent.LinkState(link=state.link, up=state.up, corrected_errors=state.corrected_errors)


def _share(message: Any) -> Share:
    """A share from its message; raises ValueError for an enum value that this agent does not know."""
    return Share(
        partition_id=message.partition_id,
        ipus=tuple(ShareIpu(ipu.ipu, ipu.routing_id, ipu.ipulink_segment_id, ipu.gcd_id) for ipu in message.ipus),
        routing=Routing(message.ipulink_routing_type),
        gw_routing=GwRouting(message.gw_routing_type),
        sync_type=SyncType(message.sync_type),
        reconfigurable=message.reconfigurable,
    )


def _result(message: Any, devices: tuple[Device, ...]) -> Any:
    result = agent.ShareResult(partition_id=message.partition_id)
    for ipu, device in zip(message.ipus, devices, strict=True):
        result.devices.add(
            ip=device.ip,
            server_port=device.server_port,
            rdma_port=device.rdma_port,
            device_id=device.device_id,
            ipulink_segment_id=ipu.ipulink_segment_id,
            routing_id=ipu.routing_id,
            ipu_arch_id=device.ipu_arch_id,
            ipu_id=ipu.ipu,
            chip_id=device.chip_id,
            gwsw_version=device.gwsw_version,
            ipum_sw_version=device.ipum_sw_version,
        )
        result.ipuof_server_version = device.ipuof_server_version
    return result
