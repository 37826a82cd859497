# SPDX-License-Identifier: GPL-3.0-or-later
"""Load on several controllers by clients that fail over, and a record of what was acknowledged and when."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc

from openipu.shared.vipu.contract import virmgrpc
from tests.integration.faults.create_remove_load import WriterRecord

CALL_SECONDS = 5.0
_PAUSE = 0.02  # seconds between two attempts to find the leader
_UNKNOWN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.CANCELLED,  # by a controller that stops
)
_REFUSED = ("does not lead", "no controller leads", "Connection refused")  # calls that changed nothing


@dataclass
class Client(threading.Thread):
    """Client with ids of its own, which creates and removes partitions one after the other.

    A call whose result is unknown ends the life of its id. The client then removes what the call may have left,
    otherwise the rack fills. If there is nothing to remove, later lists show whether the call was executed.
    """

    number: int
    addresses: Sequence[str]
    seed: int
    stopping: threading.Event
    record: WriterRecord = field(default_factory=WriterRecord)
    acknowledged_at: list[float] = field(default_factory=list)  # monotonic times
    stale_reads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(name=f"client-{self.number}", daemon=True)
        self._random = random.Random(self.seed)
        self._channels = [grpc.insecure_channel(address, _OPTIONS) for address in self.addresses]
        self._stubs = [virmgrpc.stub(channel, "UserService") for channel in self._channels]
        self._target = self.number % len(self.addresses)
        self._created = 0
        self._left: list[str] = []  # ids in doubt to remove

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        while not self.stopping.is_set():
            if self._left:
                self._remove_left(self._left[-1])
            elif self.record.present and self._random.random() < 0.5:
                self._remove(self._random.choice(list(self.record.present)))
            else:
                self._create()
        for channel in self._channels:
            channel.close()

    def _create(self) -> None:
        self._created += 1
        id, size = f"w{self.number}-{self._created}", self._random.choice((1, 1, 2, 4))
        requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id="a1")
        done = self._change("CreatePartition", virmgrpc.CreatePartitionRequest(requirements=requirements), id, size)
        if done:
            self.record.present[id] = size
            self._read(id)

    def _remove(self, id: str) -> None:
        size = self.record.present[id]
        if self._change("RemovePartition", virmgrpc.RemovePartitionRequest(partition_id=id), id, size):
            del self.record.present[id]
            self.record.removed.add(id)

    def _remove_left(self, id: str) -> None:
        """Remove what a call with unknown result may have left."""
        if self._change("RemovePartition", virmgrpc.RemovePartitionRequest(partition_id=id), id, 0):
            self._left.remove(id)
            del self.record.in_doubt[id]
            self.record.removed.add(id)

    def _change(self, method: str, request: object, id: str, size: int) -> bool:
        """Return whether the change was acknowledged."""
        while not self.stopping.is_set():
            try:
                getattr(self._stubs[self._target], method)(request, timeout=CALL_SECONDS)
            except grpc.RpcError as error:
                code, details = error.code(), error.details() or ""
                if code is grpc.StatusCode.RESOURCE_EXHAUSTED and method == "CreatePartition":
                    return False  # the rack is full
                if code is grpc.StatusCode.NOT_FOUND and id in self._left:
                    self._left.remove(id)
                    return False
                self._target = (self._target + 1) % len(self.addresses)
                if code is grpc.StatusCode.UNAVAILABLE and any(text in details for text in _REFUSED):
                    self.stopping.wait(_PAUSE)
                    continue
                # FAILED_PRECONDITION: a machine does not respond to the new leader yet.
                if code not in _UNKNOWN:
                    self.record.unexpected_errors.append(f"{method} {id}: {code.name}: {details}")
                if id not in self.record.in_doubt:
                    self.record.in_doubt[id] = size
                    self._left.append(id)
                self.record.present.pop(id, None)
                return False
            self.record.acknowledged += 1
            self.acknowledged_at.append(time.monotonic())
            return True
        return False

    def _read(self, id: str) -> None:
        """Read what was just acknowledged, from any controller that answers: it must be there."""
        request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
        stub = self._random.choice(self._stubs)
        try:
            stub.GetPartitionStatus(request, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                self.stale_reads.append(f"{id} was acknowledged and then not found")


_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 300),
    ("grpc.min_reconnect_backoff_ms", 300),
    ("grpc.use_local_subchannel_pool", 1),
)


class CheckedLoad:
    """Clients that run until ``stop``."""

    def __init__(self, addresses: Sequence[str], clients: int, seed: int) -> None:
        self._stopping = threading.Event()
        self.clients = [Client(number, addresses, seed * 1000 + number, self._stopping) for number in range(clients)]
        for client in self.clients:
            client.start()

    @property
    def acknowledged(self) -> int:
        return sum(client.record.acknowledged for client in self.clients)

    def stop(self) -> None:
        self._stopping.set()
        for client in self.clients:
            client.join(3 * CALL_SECONDS)
            assert not client.is_alive(), "a call neither failed nor returned"

    def outage(self, since: float) -> float:
        """Return the longest time without an acknowledgement that begins after ``since``, up to now.

        The first interval begins at ``since`` itself.
        """
        times = sorted(each for client in self.clients for each in list(client.acknowledged_at) if each > since)
        return max(
            (after - before for before, after in zip([since, *times], [*times, time.monotonic()], strict=True)),
            default=0,
        )

    def faults(self, found: dict[str, int]) -> list[str]:
        """Return the contradictions between the list of the leader and all acknowledgements."""
        faults = [fault for client in self.clients for fault in client.record.faults(found)]
        faults += [fault for client in self.clients for fault in client.stale_reads]
        known = {id for client in self.clients for id in (*client.record.present, *client.record.in_doubt)}
        return faults + [f"{id} was never created" for id in found.keys() - known]
