# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections of the proxy to V-IPU controllers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent import futures

import grpc

from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.proxy.controller import ControllerClient
from openipu.shared.vipu.client import Connection, VipuError

ATTEMPTS = 8  # gRPC itself pauses for 1, 1.6, 2.6 … up to 120 s between them, and needs 34 s or more for these
SECONDS = 28.0


def test_a_controller_is_found_again_soon_after_a_long_outage() -> None:
    async def body() -> list[float]:
        attempts: list[float] = []

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            attempts.append(time.monotonic())
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = ControllerClient(Controller("127.0.0.1", port), Connection("127.0.0.1", port, timeout=5.0))
        try:
            async with server, asyncio.timeout(SECONDS):
                while len(attempts) < ATTEMPTS:
                    with contextlib.suppress(VipuError):
                        await client.fits(1)
                    await asyncio.sleep(0.05)  # between rounds of the survey
        except TimeoutError:
            pass
        finally:
            client.close()
        return attempts

    found = asyncio.run(body())
    assert len(found) >= ATTEMPTS, [f"{each - found[0]:.1f}" for each in found]


def test_pods_receive_one_host_of_several() -> None:
    """The first host rejects connections, so pods receive the second one."""

    async def body() -> str:
        server = grpc.server(futures.ThreadPoolExecutor(1))
        port = server.add_insecure_port("127.0.0.2:0")
        server.start()
        controller = Controller("127.0.0.1|127.0.0.2", port)
        client = ControllerClient(controller, Connection(controller.hosts, port, timeout=20.0))
        try:
            assert client.host == "127.0.0.1", "before the first call"
            with contextlib.suppress(VipuError):  # the second host has no services
                await client.fits(1)
            return client.host
        finally:
            client.close()
            server.stop(None)

    assert asyncio.run(body()) == "127.0.0.2"
