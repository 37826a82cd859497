# SPDX-License-Identifier: GPL-3.0-or-later
"""Load of creates and removals, with a record of the acknowledged changes."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc

from openipu.shared.vipu.contract import virmgrpc


@dataclass
class WriterRecord:
    """Record of one writer: partitions that must exist, that must not exist, and those in doubt."""

    present: dict[str, int] = field(default_factory=dict)  # id -> size
    removed: set[str] = field(default_factory=set)
    in_doubt: dict[str, int] = field(default_factory=dict)  # of interrupted calls
    unexpected_errors: list[str] = field(default_factory=list)
    acknowledged: int = 0

    def faults(self, listed: Mapping[str, int]) -> list[str]:
        """Return the contradictions between a controller's list (id -> size) and its acknowledgements."""
        faults = [
            f"{id} was acknowledged and is lost" for id in self.present.keys() - listed.keys() - self.in_doubt.keys()
        ]
        faults += [f"{id} was removed and is back" for id in self.removed & listed.keys()]
        faults += [
            f"{id} has {listed[id]} IPUs instead of {size}"
            for id, size in {**self.present, **self.in_doubt}.items()
            if id in listed and listed[id] != size
        ]
        return faults + self.unexpected_errors

    def settle(self, listed: Mapping[str, int]) -> None:
        """Resolve the partitions in doubt with the controller's list."""
        for id, size in self.in_doubt.items():
            self.present.pop(id, None)
            if id in listed:
                self.present[id] = size
            else:
                self.removed.add(id)
        self.in_doubt.clear()


class Load:
    """Several writers on one controller with separate ids, until their connections break."""

    def __init__(self, allocation: str, seed: int, writers: int = 8) -> None:
        self.allocation = allocation
        self.records = [WriterRecord() for _ in range(writers)]
        self.random = random.Random(seed)
        self._ids = [map(f"w{writer}-{{}}".format, itertools.count()) for writer in range(writers)]

    def start(self, address: str, until: int) -> tuple[threading.Event, list[threading.Thread]]:
        """Start the writers. The event is set after ``until`` more acknowledged calls."""
        reached = threading.Event()
        target = sum(record.acknowledged for record in self.records) + until
        threads = [
            threading.Thread(
                target=self._write, args=(address, writer, self.random.random(), target, reached), daemon=True
            )
            for writer in range(len(self.records))
        ]
        for thread in threads:
            thread.start()
        return reached, threads

    def _write(self, address: str, writer: int, seed: float, target: int, reached: threading.Event) -> None:
        record, generator = self.records[writer], random.Random(seed)
        with grpc.insecure_channel(address) as channel:
            stub = virmgrpc.stub(channel, "UserService")
            while True:
                remove = bool(record.present) and generator.random() < 0.5
                id = generator.choice(list(record.present)) if remove else next(self._ids[writer])
                size = record.present[id] if remove else generator.choice((1, 1, 2, 4, 8))
                try:
                    if remove:
                        stub.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id), timeout=30)
                        del record.present[id]
                        record.removed.add(id)
                    else:
                        requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id=self.allocation)
                        stub.CreatePartition(virmgrpc.CreatePartitionRequest(requirements=requirements), timeout=30)
                        record.present[id] = size
                except grpc.RpcError as error:
                    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and not remove:
                        continue  # the rack is full
                    if error.code() is not grpc.StatusCode.UNAVAILABLE:
                        record.unexpected_errors.append(f"{id}: {error.code().name}: {error.details()}")
                    record.in_doubt[id] = size
                    return
                record.acknowledged += 1
                if sum(each.acknowledged for each in self.records) >= target:
                    reached.set()
