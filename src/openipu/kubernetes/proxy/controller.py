# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to one V-IPU controller, with threads of its own: a slow controller does not delay the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.scheduling import SIZES
from openipu.kubernetes.domain.visibility import Partition
from openipu.shared.vipu import ipuof
from openipu.shared.vipu.client import REMOVAL_SECONDS, Client, Connection, VipuError, partition_status
from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.shared.vipu.object_rules import IPUS_PER_MACHINE

_Result = TypeVar("_Result")

_THREADS = 8
_MOST_DIRECT_IPUS = 16  # of a partition that has DNC, unless its creator demands another routing
# The call may have been carried out, although it failed.
_AMBIGUOUS = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN", "INTERNAL"})


def is_ambiguous(error: VipuError) -> bool:
    """Return whether a failed call may have been carried out."""
    return error.code in _AMBIGUOUS


@dataclass(frozen=True, slots=True)
class PartitionState:
    """State of a partition. ``state``: ACTIVE, PENDING, REMOVED or ERROR."""

    state: str
    errors: tuple[str, ...] = ()
    busy: bool = False  # the controller is configuring it


@dataclass(frozen=True, slots=True)
class Inventory:
    """IPUs and partitions of a controller. ``fits``: size -> how many more partitions of it fit."""

    total: int  # IPUs, used or free
    free: int
    fits: Mapping[int, int]
    partitions: Mapping[str, Partition]


@dataclass(frozen=True, slots=True)
class Fit:
    """Room for partitions of one size. ``fits``: whether one fits now. ``largest``: IPUs of the largest one that fits
    into an empty controller, 0 if that was not counted because one fits now.
    """

    fits: bool
    largest: int = 0


class ControllerClient:
    """A V-IPU controller. All methods raise VipuError."""

    def __init__(self, controller: Controller, connection: Connection, cluster: str = "") -> None:
        self.controller = controller
        self.responds = True  # in the last round of the survey
        self._client = Client(connection)
        self._cluster = cluster
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"vipu-{controller.address}")
        self._public_only = False  # the controller has no call that lists allocations
        self._most_ipus = 0  # that such a controller has had

    @property
    def host(self) -> str:
        """Host for clients with one address: of several hosts, the one that was called last."""
        host = self.controller.host
        return self._client.host if "|" in host else host

    def close(self) -> None:
        """Close the connection. Calls in progress end in their threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    async def fits(self, size: int) -> int:
        """Return how many more partitions of a size fit."""
        return await self._run(lambda: self._fits(size))

    async def fit(self, size: int) -> Fit:
        """Return whether a partition of a size fits now, and if not, the room when all other ones are removed."""
        return await self._run(lambda: self._fit(size))

    async def inventory(self, sizes: Sequence[int]) -> Inventory:
        """Return the IPUs and partitions. ``sizes``: of partitions that may fit."""
        return await self._run(lambda: self._inventory(sizes))

    async def create(self, id: str, size: int, workers: int) -> None:
        """Create a partition with a graph compilation domain for each worker."""
        await self._run(lambda: self._create(id, size, workers))

    async def reset(self, id: str) -> None:
        """Reset a partition. It is PENDING until its IPUs are ready."""
        request = virmgrpc.ResetPartitionRequest(partition_id=id)
        await self._call(self._client.user.ResetPartition, request, f"reset partition {id!r}")

    async def remove(self, id: str) -> None:
        """Remove a partition. A missing one is no error."""
        request = virmgrpc.RemovePartitionRequest(partition_id=id)
        try:
            await self._call(self._client.user.RemovePartition, request, f"remove partition {id!r}", REMOVAL_SECONDS)
        except VipuError as error:
            if error.code != "NOT_FOUND":
                raise

    async def status(self, id: str) -> PartitionState | None:
        """Return the state of a partition, None if there is none."""
        try:
            found = await self._run(lambda: partition_status(self._client, id))
        except VipuError as error:
            if error.code == "NOT_FOUND":
                return None
            raise
        busy = found.operation_state not in (virmgrpc.POS_IDLE, virmgrpc.POS_FAILED)
        return PartitionState(_state_name(found.ready_state), tuple(found.errors), busy)

    async def routing(self, id: str, size: int) -> str:
        """Return the IPU-Link routing of a partition that this proxy has created, empty if it does not exist.

        Controllers choose DNC for small ones, so these cost no call. The public API has no call for one partition.
        """
        if size <= _MOST_DIRECT_IPUS:
            return "DNC"
        request = virmgrpc.ListPartitionsRequest()
        reply = await self._call(self._client.user.ListPartitions, request, "list partitions")
        found = (each.spec.ipulink_routing_type for each in reply.partitions if each.id == id)
        name = virmgrpc.IpuLinkRoutingType.Name(next(found, virmgrpc.IRT_UNDEFINED))
        return "" if name == "IRT_UNDEFINED" else str(name).removeprefix("IRT_")

    async def ipuof_config(self, id: str) -> str:
        """Return the IPUoF configuration of the only GCD of a partition, as JSON."""
        request = virmgrpc.GetPartitionIpuofConfigRequest(partition_id=id)
        reply = await self._call(
            self._client.user.GetPartitionIpuofConfig, request, f"get the IPUoF configuration of partition {id!r}"
        )
        return next(iter(ipuof.files(id, reply.ipuof_config).values()))

    def _create(self, id: str, size: int, workers: int) -> None:
        allocations = self._allocations()
        candidates = [each for each in allocations or [] if each.free_ipus >= size]
        if allocations is not None and not candidates:
            raise VipuError(
                f"The V-IPU controller {self.controller.address} has no allocation with {size} free IPUs. Use fewer.",
                "RESOURCE_EXHAUSTED",
            )
        rejection: VipuError | None = None
        for allocation in sorted(candidates, key=lambda each: _creation_order(each, size)) or [None]:
            requirements = virmgrpc.PartitionRequirements(id=id, size=size, num_gcds=workers)
            if allocation is not None:
                requirements.allocation_id = allocation.spec.id
            else:
                requirements.cluster_id = self._cluster
            request = virmgrpc.CreatePartitionRequest(requirements=requirements)
            try:
                self._client.call(self._client.user.CreatePartition, request, f"create partition {id!r}")
            except VipuError as error:
                if error.code != "RESOURCE_EXHAUSTED":
                    raise
                rejection = error
            else:
                return
        if rejection is not None:
            raise rejection

    def _fits(self, size: int) -> int:
        allocations = self._allocations()
        if allocations is None:
            return self._inventory([size]).fits[size]
        return self._count_fits(allocations, [size])[size]

    def _fit(self, size: int) -> Fit:
        allocations = self._allocations()
        if allocations is None:
            inventory = self._inventory([size])
            self._most_ipus = max(self._most_ipus, inventory.total)  # IPUs of agents that are down are not listed
            has_room = inventory.fits[size] > 0
            return Fit(has_room, 0 if has_room else _largest_size(self._most_ipus))
        largest = 0
        # The first allocation with room ends the search. A call for each one would make the last of many partitions
        # more expensive than the first.
        for each in sorted(allocations, key=lambda each: _creation_order(each, size)):
            fits, total = self._count_fits([each], SIZES), each.spec.size * IPUS_PER_MACHINE
            if fits[size]:
                return Fit(fits=True)
            # The room of an allocation is exact only if all its machines are free, and none of their agents is down.
            # It may have less room than IPUs, because partitions need neighbouring machines.
            is_exact = fits[IPUS_PER_MACHINE] * IPUS_PER_MACHINE == total
            possible = (
                max((size for size, count in fits.items() if count), default=0) if is_exact else _largest_size(total)
            )
            largest = max(largest, possible)
        return Fit(fits=False, largest=largest)

    def _count_fits(self, allocations: list[Any], sizes: Sequence[int]) -> dict[int, int]:
        counts = dict.fromkeys(sizes, 0)
        for each in allocations if sizes else []:
            request = admin.CountFitsRequest(allocation_id=each.spec.id, sizes=sizes)
            reply = self._client.call(self._client.tenant.CountFits, request, "count the partitions that fit")
            for fit in reply.fits:
                counts[fit.size] += fit.count
        return counts

    def _inventory(self, sizes: Sequence[int]) -> Inventory:
        allocations = self._allocations()
        partitions = self._partitions(all_clusters=allocations is None)
        if allocations is not None:
            total = sum(each.spec.size for each in allocations) * IPUS_PER_MACHINE
            free = sum(each.free_ipus for each in allocations)
            return Inventory(total, free, self._count_fits(allocations, sizes), partitions)
        user = self._client.user
        attributes = self._client.call(user.ListIPUAttributes, virmgrpc.ListIPUAttributesRequest(), "list the IPUs")
        total = sum(len(each.ipu_attributes) for each in attributes.entries)
        free = max(0, total - sum(each.ipus for each in partitions.values()))
        return Inventory(total, free, {size: free // size for size in sizes}, partitions)

    def _partitions(self, *, all_clusters: bool) -> dict[str, Partition]:
        request = virmgrpc.ListPartitionsRequest()
        reply = self._client.call(self._client.user.ListPartitions, request, "list partitions")
        return {
            each.id: Partition(
                _state_name(each.ready_state),
                len(each.spec.ipus),
                all_clusters or self._cluster in ("", each.spec.cluster_id),
            )
            for each in reply.partitions
        }

    def _allocations(self) -> list[Any] | None:
        """Return the allocations that may be used, None if the controller offers only the public user API."""
        if self._public_only:
            return None
        try:
            request = admin.ListAllocationsRequest()
            reply = self._client.call(self._client.tenant.ListAllocations, request, "list allocations")
        except VipuError as error:
            if error.code == "UNIMPLEMENTED":
                self._public_only = True
                return None
            raise
        return [each for each in reply.allocations if self._cluster in ("", each.spec.cluster_id)]

    async def _call(self, method: Callable[..., Any], request: Any, action: str, timeout: float = 0) -> Any:
        return await self._run(lambda: self._client.call(method, request, action, timeout))

    async def _run(self, function: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)


def responding(clients: Iterable[ControllerClient]) -> list[ControllerClient]:
    """Return the controllers that responded in the last round of the survey, or all of them if none did.

    So one that does not respond delays no call for the others.
    """
    found = list(clients)
    return [each for each in found if each.responds] or found


def _creation_order(allocation: Any, size: int) -> tuple[bool, int]:
    """Return the sort key of an allocation for a new partition.

    Those with few free IPUs come first, so that large partitions keep their room, and those with too few last.
    """
    return allocation.free_ipus < size, allocation.free_ipus


def _largest_size(ipus: int) -> int:
    """Return the size of the largest partition with at most this number of IPUs."""
    return max(each for each in (0, *SIZES) if each <= ipus)


def _state_name(state: int) -> str:
    return str(virmgrpc.PartitionReadyState.Name(state)).removeprefix("PS_")
