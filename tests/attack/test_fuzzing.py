# SPDX-License-Identifier: GPL-3.0-or-later
"""Random requests to all methods of a controller return regular status codes, without a crash or a leak."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import psutil
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from tests.integration.faults import hostile
from tests.integration.vipu_servers import Client, Process

SEED = "OPENIPU_FUZZING_SEED"  # environment variable
IN_FLIGHT = 64
ROUND = 5_000  # requests until the objects that they removed are created again
MEGABYTE = 1 << 20


class Fuzzer:
    """Random requests to a controller with two endpoints."""

    def __init__(self, server: Process, seed: int) -> None:
        self.random = random.Random(seed)
        self.user, self.administrator = server, Client(server.ready.rpartition(" on ")[2].strip())
        services = "VersionService", "UserService"
        users = hostile.methods(*map(virmgrpc.service, services), admin.service("TenantService"))
        administrators = hostile.methods(admin.service("AdminService"))
        calls = [(server.channel, method) for method in users]
        calls += [(self.administrator.channel, method) for method in (*users, *administrators)]
        self.targets = [
            (channel, method.path, [message.SerializeToString() for _, message in hostile.variants(method.request)])
            for channel, method in calls
            if not method.streaming
        ]
        self.broken: list[str] = []
        self._free = threading.Semaphore(IN_FLIGHT)

    def run(self, count: int) -> None:
        """Send this number of requests and wait for the responses."""
        for _ in range(0, count, ROUND):
            self._create_objects()
            for _ in range(min(count, ROUND)):
                self._send(*self.random.choice(self.targets))
            for _ in range(IN_FLIGHT):
                self._free.acquire()
            self._free.release(IN_FLIGHT)
            assert not self.broken, self.broken[:3]

    def _create_objects(self) -> None:
        """Create an object ``a1`` of every kind, to which the requests refer."""
        self.administrator.admin.Apply(
            admin.ApplyRequest(
                agents=[admin.AgentSpec(id="a1", host="127.0.0.9", port=9)],
                clusters=[admin.ClusterSpec(id="a1", agent_ids=["a1"])],
                allocations=[admin.AllocationSpec(id="a1", cluster_id="a1", size=1)],
                users=[admin.UserSpec(id="a1")],
            ),
            timeout=20,
        )

    def _send(self, channel: grpc.Channel, path: str, messages: list[bytes]) -> None:
        data = self._payload(messages)
        self._free.acquire()
        call = channel.unary_unary(path, None, None).future(data, timeout=60)

        def finished(done: Any) -> None:
            code, details = done.code(), done.details() or ""
            if code in hostile.BROKEN or not details.isprintable() or len(details) > 1000:
                self.broken.append(f"{path} with {data.hex()}: {code.name} {details!r}")
            self._free.release()

        call.add_done_callback(finished)

    def _payload(self, messages: list[bytes]) -> bytes:
        """Return random bytes, or messages with hostile values: merged, truncated, or with changed bytes."""
        kind, generator = self.random.randrange(4), self.random
        if kind == 0:
            return generator.randbytes(generator.randint(1, 300))
        data = generator.choice(messages) + generator.choice(messages)
        if kind == 1 or not data:
            return data
        if kind == 2:
            return data[: generator.randrange(len(data))]
        changed = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            changed[generator.randrange(len(changed))] = generator.randrange(256)
        return bytes(changed)


@pytest.fixture
def fuzzer(vipu_process: Callable[..., Process]) -> Iterator[Fuzzer]:
    seed = int(os.environ.get(SEED) or int.from_bytes(os.urandom(4), "big"))
    print(f"set {SEED}={seed} to repeat this run")
    server = vipu_process("--admin-port", "0", "--partition-timeout", "1", "--log-level", "error")
    found = Fuzzer(server, seed)
    yield found
    found.administrator.close()


class NoError(Exception):
    """Exception that nothing raises."""


def attack(fuzzer: Fuzzer, count: int) -> None:
    server = fuzzer.user
    process = psutil.Process(server.process.pid)
    fuzzer.run(min(count, ROUND))  # fills caches
    memory = process.memory_info().rss
    fuzzer.run(count - min(count, ROUND))
    assert process.memory_info().rss <= memory + 64 * MEGABYTE
    assert server.stop() == 0
    log = "".join(server.errors)
    assert "Traceback" not in log and "internal error" not in log, log[:3000]


@pytest.mark.defence("openipu.vipu.api.status.DecodeError", NoError)
def test_thousand_random_requests(fuzzer: Fuzzer) -> None:
    attack(fuzzer, 1_000)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.defence("openipu.vipu.api.status.DecodeError", NoError)
def test_million_random_requests(fuzzer: Fuzzer) -> None:
    attack(fuzzer, 1_000_000)
