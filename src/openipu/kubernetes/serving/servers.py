# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP servers of a program together with its background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

import uvicorn

from openipu.process.signals import stop_signal


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # ``serve`` handles them


def https(
    application: Any, host: str, port: int, context: ssl.SSLContext, max_connections: int | None = None
) -> uvicorn.Config:
    """Return an HTTPS server. Changes of the context apply to the next connection.

    Requests on connections beyond ``max_connections`` receive status 503.
    """
    config = uvicorn.Config(
        application,
        host,
        port,
        log_config=None,
        access_log=False,
        lifespan="off",
        limit_concurrency=max_connections,
    )
    config.load()
    config.ssl = context
    return config


async def serve(configs: Iterable[uvicorn.Config], background: Iterable[Coroutine[Any, Any, None]] = ()) -> None:
    """Run servers and background tasks until SIGTERM or SIGINT, or until one of them ends. Raises its error."""
    servers = [_Server(each) for each in configs]
    serving = [asyncio.create_task(each.serve()) for each in servers]
    others = [asyncio.create_task(each) for each in background]
    stop = asyncio.create_task(stop_signal())
    done, _ = await asyncio.wait({stop, *serving, *others}, return_when=asyncio.FIRST_COMPLETED)
    for server in servers:
        server.should_exit = True
    for each in (stop, *others):
        each.cancel()
    await asyncio.gather(*serving, *others, stop, return_exceptions=True)
    for each in done - {stop}:
        each.result()
