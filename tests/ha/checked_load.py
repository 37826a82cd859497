# SPDX-License-Identifier: GPL-3.0-or-later
"""Load on several controllers by clients that fail over, and a record of what was acknowledged and when."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc

from openipu.shared.vipu.contract import virmgrpc
from tests.ha.linearizability import Action, Call, Result, linearizable
from tests.integration.faults.create_remove_load import WriterRecord

CALL_SECONDS = 5.0
_PAUSE = 0.02  # seconds between two attempts to find the leader
_UNKNOWN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.CANCELLED,  # by a controller that stops
)
_ACTIONS = {"CreatePartition": Action.CREATE, "RemovePartition": Action.REMOVE}
_CERTAIN = {  # rejections that show whether the partition exists
    (Action.CREATE, grpc.StatusCode.ALREADY_EXISTS): Result.PRESENT,
    (Action.REMOVE, grpc.StatusCode.NOT_FOUND): Result.ABSENT,
    (Action.READ, grpc.StatusCode.NOT_FOUND): Result.ABSENT,
}
_RECENT = 100  # ids that other clients read
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
    ids: list[str]  # of all clients, in the order of their first call
    record: WriterRecord = field(default_factory=WriterRecord)
    acknowledged_at: list[float] = field(default_factory=list)  # monotonic times
    calls: list[tuple[str, Call]] = field(default_factory=list)  # with the id
    last_error: str = ""  # of a change since the last acknowledgement

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
            self._read(self._random.choice(self.ids[-_RECENT:]))
        for channel in self._channels:
            channel.close()

    def _create(self) -> None:
        self._created += 1
        id, size = f"w{self.number}-{self._created}", self._random.choice((1, 1, 2, 4))
        requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id="a1")
        self.ids.append(id)
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
        action = _ACTIONS[method]
        while not self.stopping.is_set():
            start = time.monotonic()
            try:
                getattr(self._stubs[self._target], method)(request, timeout=CALL_SECONDS)
            except grpc.RpcError as error:
                code, details = error.code(), error.details() or ""
                self.last_error = f"{method}: {code.name}: {details}"
                if code is grpc.StatusCode.RESOURCE_EXHAUSTED and method == "CreatePartition":
                    return False  # the rack is full
                refused = code is grpc.StatusCode.UNAVAILABLE and any(text in details for text in _REFUSED)
                if not refused:
                    self._record(id, action, _CERTAIN.get((action, code), Result.UNKNOWN), start)
                if code is grpc.StatusCode.NOT_FOUND and id in self._left:
                    self._left.remove(id)
                    return False
                self._target = (self._target + 1) % len(self.addresses)
                if refused:
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
            self._record(id, action, Result.DONE, start)
            self.last_error = ""
            self.record.acknowledged += 1
            self.acknowledged_at.append(time.monotonic())
            return True
        return False

    def _read(self, id: str) -> None:
        """Read a partition from the leader, or from any controller, as one may not know that it no longer leads."""
        request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
        stub = self._stubs[self._target] if self._random.random() < 0.5 else self._random.choice(self._stubs)
        start = time.monotonic()
        try:
            stub.GetPartitionStatus(request, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            if result := _CERTAIN.get((Action.READ, error.code())):
                self._record(id, Action.READ, result, start)
        else:
            self._record(id, Action.READ, Result.PRESENT, start)

    def _record(self, id: str, action: Action, result: Result, start: float) -> None:
        """Add a call that ends now to the history. A result that is not known stays open-ended."""
        end = () if result is Result.UNKNOWN else (time.monotonic(),)
        self.calls.append((id, Call(action, result, start, *end)))


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
        ids: list[str] = []
        self.clients = [
            Client(number, addresses, seed * 1000 + number, self._stopping, ids) for number in range(clients)
        ]
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

    def errors(self) -> str:
        """Return the last errors of the clients, the most frequent first, with the number of clients."""
        counts = Counter(client.last_error or "none" for client in self.clients)
        return "\n".join(f"{count:3} × {error}" for error, count in counts.most_common())

    def outage(self, since: float) -> float:
        """Return the longest time without an acknowledgement that begins after ``since``, up to now.

        The first interval begins at ``since`` itself.
        """
        times = sorted(each for client in self.clients for each in list(client.acknowledged_at) if each > since)
        return max(
            (after - before for before, after in zip([since, *times], [*times, time.monotonic()], strict=True)),
            default=0,
        )

    def silence(self) -> float:
        """Return the time since the last acknowledgement, or since the start of the clock without one."""
        last = max((client.acknowledged_at[-1] for client in self.clients if client.acknowledged_at), default=0.0)
        return time.monotonic() - last

    def faults(self, found: dict[str, int]) -> list[str]:
        """Return the contradictions between the list of the leader and all acknowledgements."""
        faults = [fault for client in self.clients for fault in client.record.faults(found)]
        faults += self.violations()
        known = {id for client in self.clients for id in (*client.record.present, *client.record.in_doubt)}
        return faults + [f"{id} was never created" for id in found.keys() - known]

    def histories(self) -> dict[str, list[Call]]:
        """Return the calls of all clients by partition, in the order of their starts."""
        found: dict[str, list[Call]] = defaultdict(list)
        for client in self.clients:
            for id, call in client.calls:
                found[id].append(call)
        return {id: sorted(calls, key=lambda call: call.start) for id, calls in found.items()}

    def violations(self) -> list[str]:
        """Return the histories of single partitions that no order of the calls explains."""
        return [
            f"{id} has no linearizable history: {'; '.join(map(str, calls))}"
            for id, calls in self.histories().items()
            if not linearizable(calls)
        ]
