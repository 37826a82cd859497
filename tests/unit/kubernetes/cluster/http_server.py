# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP server in the place of an API server, for tests of single requests."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web


@contextlib.asynccontextmanager
async def serving(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    """Yield the URL of a server that answers every request with this function."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
