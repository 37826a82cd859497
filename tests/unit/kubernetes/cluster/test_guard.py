# SPDX-License-Identifier: GPL-3.0-or-later
"""Check of writes just before they are sent."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web

from openipu.kubernetes.cluster import guard


class OutdatedError(Exception):
    """Raised by a check."""


def test_a_write_that_waits_for_a_connection_is_checked_when_it_has_one() -> None:
    asyncio.run(_late_check())


async def _late_check() -> None:
    received: list[str] = []
    held, allowed = asyncio.Event(), True

    async def answer(request: web.Request) -> web.Response:
        received.append(request.path)
        if request.path == "/slow":
            await held.wait()
        return web.Response()

    def check() -> None:
        if not allowed:
            raise OutdatedError

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with aiohttp.ClientSession(f"http://{host}:{port}", connector=aiohttp.TCPConnector(limit=1)) as session:
        guard.install(session)

        async def write(path: str) -> None:
            with guard.checked(check):
                (await session.post(path)).release()

        slow = asyncio.create_task(write("/slow"))
        while not received:
            await asyncio.sleep(0.001)
        late = asyncio.create_task(write("/late"))
        await asyncio.sleep(0)
        allowed = False
        held.set()
        await slow
        with pytest.raises(OutdatedError):
            await late
        (await session.get("/unchecked")).release()  # with the connection that the rejected write gave back
        assert received == ["/slow", "/unchecked"]
    await runner.cleanup()
