# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers of the agent API, which map messages to calls of the hardware."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import structlog

from openipu.shared.pod.topology import CableKind
from openipu.vipu.agent.faults import Faults
from openipu.vipu.agent.hardware import (
    Hardware,
    HardwareError,
    LinkState,
    PartitionFault,
    Pulses,
    Share,
    ShareIpu,
)
from openipu.vipu.agent.ownership import Ownership, OwnershipError, caller, reject
from openipu.vipu.agent_api.contract import agent
from openipu.vipu.agent_api.identity import Controller
from openipu.vipu.agent_api.limits import MAX_PARTITIONS_PER_CALL
from openipu.vipu.domain.model import Device, GwRouting, Routing, SyncType
from openipu.vipu.metrics.catalog import MACHINE
from openipu.vipu.metrics.meters import Meters

DEFAULT_HEARTBEAT = 2000  # milliseconds
SHORTEST_HEARTBEAT = 50
_CONTROLLERS = "controllers"  # party that causes lines of the log, which are limited
_EXPORTER = "Exporter"  # name of the fact with the URL of the metrics

_log: structlog.stdlib.BoundLogger = structlog.get_logger("virm-agent")


class AgentService:
    """Handlers of ``openipu.vipu.agent.v1.AgentService``, all in one event loop."""

    def __init__(self, hardware: Hardware, ownership: Ownership) -> None:
        self._hardware = hardware
        self._ownership = ownership
        self._change_lock = asyncio.Lock()  # one change of partitions at a time
        self._revision = 0
        self._revision_of = hardware.boot_id
        self._watchers: dict[Faults, Controller | None] = {}  # the faults that the next event reports -> the caller
        self._configured_by: dict[str, Controller] = {}  # partition -> the last controller that configured it here
        # Faults since the last configuration of their partitions, for controllers that were not connected.
        self._faults = Faults()
        self.exporter = "off"  # URL of the metrics, which the hardware does not have
        self.meters = Meters(MACHINE)
        self._ipu_faults = self.meters.counter("ipum_ipu_faults_total")
        hardware.on_fault(self._report_fault)
        ownership.on_change(self._wake_watchers)

    @property
    def watchers(self) -> int:
        """Number of callers that follow the events."""
        return len(self._watchers)

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """Yield heartbeats with the held partitions, and faults at once, until the call is cancelled.

        A controller must be the owner, or become it. FAILED_PRECONDITION when it is not, or no longer.
        """
        interval = max(request.heartbeat_milliseconds or DEFAULT_HEARTBEAT, SHORTEST_HEARTBEAT) / 1000
        controller = caller(context)
        if controller:
            await self._claim(controller, context)
        news = Faults()
        self._watchers[news] = controller
        try:
            self._current_revision()  # drops the faults of an earlier boot
            faults = self._faults.all()
            while True:
                if controller:
                    await reject(self._ownership.rejection(controller), context)
                yield await self._event(faults)
                faults = await news.take(interval)
        finally:
            del self._watchers[news]

    async def TakeOver(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Make the caller the owner.

        FAILED_PRECONDITION without ``other_agent`` when the machine holds partitions of another agent of the owner.
        """
        controller = caller(context)
        if controller is None:
            await reject(self._ownership.rejection(None), context)
        elif self._ownership.is_other_agent(controller) and not request.other_agent:
            await self._claim(controller, context)
        else:
            _log.warning("taken over", before=self._ownership.owner, owner=controller, party=_CONTROLLERS)
            await self._change_owner(lambda: self._ownership.take_over(controller), context)
        return agent.TakeOverReply()

    async def GiveUp(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Remove the owner."""
        await self._change_owner(self._ownership.give_up, context)
        return agent.GiveUpReply()

    async def GetInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return identity and versions."""
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
        """Return the attributes of all IPUs."""
        reply = agent.ListIpuAttributesReply()
        for ipu, attributes in (await self._hardware.ipu_attributes()).items():
            reply.ipus[ipu].attributes.update(attributes)
        return reply

    async def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Configure shares one by one. An error of one share does not affect the others."""
        await _check_limit(request.shares, context)
        results = []
        controller = caller(context)
        async with self._changing(controller, context):
            for message in request.shares:
                try:
                    if controller:
                        self._configured_by[message.partition_id] = controller
                    devices = await self._hardware.configure(_share(message), message.reset)
                    self._drop_faults(message.partition_id)
                    results.append(_result(message, devices))
                except (HardwareError, ValueError) as error:
                    _log.warning(
                        "share rejected", partition=message.partition_id, reason=str(error), party=_CONTROLLERS
                    )
                    results.append(agent.ShareResult(partition_id=message.partition_id, error=str(error)))
            held = await self._hardware.read_shares()
            self._configured_by = {id: by for id, by in self._configured_by.items() if id in held}
            return agent.ConfigureReply(results=results, boot_id=self._hardware.boot_id, revision=self._next_revision())

    async def Release(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Release partitions on this machine."""
        await _check_limit(request.partition_ids, context)
        results = []
        async with self._changing(caller(context), context):
            for id in request.partition_ids:
                error = ""
                try:
                    await self._hardware.release(id)
                    self._drop_faults(id)
                except HardwareError as rejection:
                    error = str(rejection)
                results.append(agent.ShareResult(partition_id=id, error=error))
            revision = self._next_revision()
            self._wake_watchers()  # controllers wait for an event that confirms the release
            return agent.ReleaseReply(results=results, boot_id=self._hardware.boot_id, revision=revision)

    async def ReadCables(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return the serial ids of the cables in all chassis ports."""
        return agent.ReadCablesReply(
            ports=[
                agent.CablePort(kind=cable.kind.name, port=cable.port, serial=cable.serial)
                for cable in await self._hardware.cables()
            ]
        )

    async def TrainLinks(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Train links. FAILED_PRECONDITION when the hardware reports an error."""
        try:
            kinds = {_cable_kind(kind) for kind in request.kinds} or {CableKind.IPU_LINK, CableKind.GW_LINK}
            links = await self._hardware.train_links(kinds)
        except HardwareError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Cannot train the links: {error}.")
        return agent.TrainLinksReply(links=map(_link, links))

    async def ClearSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Reset the counters of received sync pulses."""
        await self._hardware.clear_sync()
        return agent.ClearSyncReply()

    async def PulseSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Send sync pulses. FAILED_PRECONDITION when the hardware reports an error."""
        try:
            pulses = [Pulses(_cable_kind(item.kind), item.port, item.count) for item in request.ports]
            await self._hardware.pulse_sync(pulses)
        except HardwareError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Cannot send sync pulses: {error}.")
        return agent.PulseSyncReply()

    async def ReadSync(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return the number of received pulses for each port."""
        reply = agent.ReadSyncReply()
        for item in await self._hardware.read_sync():
            reply.ports.add(kind=item.kind.name, port=item.port, count=item.count)
        return reply

    async def RunTraffic(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Send traffic over IPU-Links. FAILED_PRECONDITION when the hardware reports an error."""
        try:
            links = await self._hardware.run_traffic(set(request.ports))
        except HardwareError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Cannot run the traffic test: {error}.")
        return agent.RunTrafficReply(links=map(_link, links))

    async def ReadPfc(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Return the classes with priority flow control on the RNIC."""
        reply = agent.ReadPfcReply()
        for interface, classes in (await self._hardware.pfc_classes()).items():
            reply.interfaces[interface].classes.extend(classes)
        return reply

    @asynccontextmanager
    async def _changing(self, controller: Controller | None, context: Any) -> AsyncIterator[None]:
        """Return a context for one change of partitions at a time, by the owner: it may change during the wait."""
        async with self._change_lock:
            await reject(self._ownership.rejection(controller), context)
            yield

    async def _claim(self, controller: Controller, context: Any) -> None:
        """Make a controller the owner of an agent without owner, or abort its call when it is not the owner.

        The agent becomes another one of its owner only when no partition holds its IPUs, and no controller follows
        it under the earlier id. Partitions belong to the machine: a controller with a wrong address must not change
        them. Two agents with the address of one machine must not take it from each other.
        """
        if not self._ownership.is_other_agent(controller):
            await self._change_owner(lambda: self._ownership.claim(controller), context)
            return
        if self._change_lock.locked():  # the other agent configures or releases a partition now, which may take long
            await reject(self._ownership.rejection(controller), context)
        async with self._change_lock:
            before = self._ownership.owner
            is_watched = before in self._watchers.values()
            is_idle = not is_watched and not await self._hardware.read_shares()
            await self._change_owner(lambda: self._ownership.claim(controller, is_idle), context)
            _log.warning("registered as another agent", before=before, owner=controller, party=_CONTROLLERS)

    async def _change_owner(self, change: Callable[[], str | None], context: Any) -> None:
        """Change the owner, or abort the call when the caller may not, or the owner cannot be stored."""
        try:
            reason = change()
        except OwnershipError as error:
            _log.error("owner not changed", reason=str(error))
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
        await reject(reason, context)

    def _wake_watchers(self) -> None:
        for news in self._watchers:
            news.wake()

    def _report_fault(self, fault: PartitionFault) -> None:
        self._ipu_faults.labels(str(fault.ipu)).inc()
        self._current_revision()
        for faults in (self._faults, *self._watchers):
            faults.add(fault)

    def _drop_faults(self, partition_id: str) -> None:
        self._faults.keep(lambda id: id != partition_id)

    async def _event(self, faults: list[PartitionFault]) -> Any:
        # Read the revision before the list: an event may look older than it is, but never newer.
        boot_id, revision = self._hardware.boot_id, self._current_revision()
        held = await self._hardware.read_shares()
        return agent.AgentEvent(
            boot_id=boot_id,
            shares=[self._held_share(id, held[id]) for id in sorted(held)],
            revision=revision,
            faults=[
                agent.PartitionFault(partition_id=fault.partition_id, ipu=fault.ipu, reason=fault.reason)
                for fault in faults
            ],
        )

    def _held_share(self, partition_id: str, ipus: Iterable[int]) -> Any:
        by = self._configured_by.get(partition_id)
        return agent.HeldShare(
            partition_id=partition_id,
            ipus=sorted(ipus),
            deployment=by.deployment if by else "",
            epoch=by.epoch if by else 0,
        )

    def _current_revision(self) -> int:
        if self._revision_of != self._hardware.boot_id:
            self._revision_of, self._revision = self._hardware.boot_id, 0
            self._faults.keep(lambda id: False)
        return self._revision

    def _next_revision(self) -> int:
        self._revision = self._current_revision() + 1
        return self._revision


async def _check_limit(items: Any, context: Any) -> None:
    if len(items) > MAX_PARTITIONS_PER_CALL:
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"Cannot process {len(items)} partitions in one call: at most {MAX_PARTITIONS_PER_CALL} are allowed.",
        )


def _cable_kind(number: int) -> CableKind:
    """Return the kind of cable with this number. Raises HardwareError for an unknown number."""
    try:
        return CableKind[agent.CablePort.Kind.Name(number)]
    except (KeyError, ValueError):
        raise HardwareError(f"it has no cables of kind {number}") from None


def _link(state: LinkState) -> Any:
    return agent.LinkState(link=state.link, up=state.up, corrected_errors=state.corrected_errors)


def _share(message: Any) -> Share:
    """Return the share in a message. Raises ValueError for an unknown enum value."""
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
