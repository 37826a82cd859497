# SPDX-License-Identifier: GPL-3.0-or-later
"""A storm of creates and removals, and the books that it keeps about what was acknowledged."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import virmgrpc


@dataclass
class Books:
    """What one writer knows: partitions that must be there, that must not, and those in doubt."""

    present: dict[str, int] = field(default_factory=dict)  # id -> size
    gone: set[str] = field(default_factory=set)
    in_doubt: dict[str, int] = field(default_factory=dict)  # of calls that were cut off
    surprises: list[str] = field(default_factory=list)
    acknowledged: int = 0

    def faults(self, listed: Mapping[str, int]) -> list[str]:
        """A sentence for everything in which a controller's list (id -> size) contradicts what it acknowledged."""
        faults = [
            f"{id} was acknowledged and is lost" for id in self.present.keys() - listed.keys() - self.in_doubt.keys()
        ]
        faults += [f"{id} was removed and is back" for id in self.gone & listed.keys()]
        faults += [
            f"{id} has {listed[id]} IPUs instead of {size}"
            for id, size in {**self.present, **self.in_doubt}.items()
            if id in listed and listed[id] != size
        ]
        return faults + self.surprises

    def settle(self, listed: Mapping[str, int]) -> None:
        """Believe the controller about what is in doubt."""
        for id, size in self.in_doubt.items():
            self.present.pop(id, None)
            if id in listed:
                self.present[id] = size
            else:
                self.gone.add(id)
        self.in_doubt.clear()


class Storm:
    """Several writers on one controller, each with ids of its own, until they are cut off."""

    def __init__(self, allocation: str, seed: int, writers: int = 8) -> None:
        self.allocation = allocation
        self.books = [Books() for _ in range(writers)]
        self.random = random.Random(seed)
        self._ids = [map(f"w{writer}-{{}}".format, itertools.count()) for writer in range(writers)]

    def rage(self, address: str, until: int) -> tuple[threading.Event, list[threading.Thread]]:
        """Start the writers; the event is set once ``until`` more calls were acknowledged."""
        reached = threading.Event()
        goal = sum(books.acknowledged for books in self.books) + until
        threads = [
            threading.Thread(
                target=self._write, args=(address, writer, self.random.random(), goal, reached), daemon=True
            )
            for writer in range(len(self.books))
        ]
        for thread in threads:
            thread.start()
        return reached, threads

    def _write(self, address: str, writer: int, seed: float, goal: int, reached: threading.Event) -> None:
        books, dice = self.books[writer], random.Random(seed)
        with grpc.insecure_channel(address) as channel:
            stub = virmgrpc.stub(channel, "UserService")
            while True:
                remove = bool(books.present) and dice.random() < 0.5
                id = dice.choice(list(books.present)) if remove else next(self._ids[writer])
                size = books.present[id] if remove else dice.choice((1, 1, 2, 4, 8))
                try:
                    if remove:
                        stub.RemovePartition(virmgrpc.RemovePartitionRequest(partition_id=id), timeout=30)
                        del books.present[id]
                        books.gone.add(id)
                    else:
                        requirements = virmgrpc.PartitionRequirements(id=id, size=size, allocation_id=self.allocation)
                        stub.CreatePartition(virmgrpc.CreatePartitionRequest(requirements=requirements), timeout=30)
                        books.present[id] = size
                except grpc.RpcError as error:
                    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and not remove:
                        continue  # the rack is full
                    if error.code() is not grpc.StatusCode.UNAVAILABLE:
                        books.surprises.append(f"{id}: {error.code().name}: {error.details()}")
                    books.in_doubt[id] = size
                    return
                books.acknowledged += 1
                if sum(each.acknowledged for each in self.books) >= goal:
                    reached.set()
