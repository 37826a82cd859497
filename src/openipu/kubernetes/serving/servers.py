# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP servers of a program together with its background tasks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from openipu.process.failures import EndpointError
from openipu.process.signals import stop_signal

READ_SECONDS = 30  # time limit for the headers of a request


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # ``serve`` handles them


class _Config(uvicorn.Config):
    """Settings of a server, with a time limit for the headers of requests."""

    def __init__(
        self,
        application: Any,
        host: str,
        port: int,
        *,
        read_seconds: float = READ_SECONDS,
        timeout_keep_alive: int = 5,
        limit_concurrency: int | None = None,
    ) -> None:
        super().__init__(
            application,
            host,
            port,
            http=_Connection,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=timeout_keep_alive,
            limit_concurrency=limit_concurrency,
        )
        self.read_seconds = read_seconds


class _Connection(H11Protocol):
    """A connection that is closed when the headers of a request do not arrive in time.

    uvicorn limits the time between two requests only.
    """

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_limit()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_limit()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._limit is not None:
            self._limit.cancel()

    def _set_limit(self) -> None:
        waits = self.conn.their_state is h11.IDLE
        if waits and self._limit is None:
            assert isinstance(self.config, _Config)
            self._limit = self.loop.call_later(self.config.read_seconds, self.transport.close)
        elif not waits and self._limit is not None:
            self._limit.cancel()
            self._limit = None


def http(
    application: Any, host: str, port: int, *, read_seconds: float = READ_SECONDS, idle_seconds: int = 5
) -> uvicorn.Config:
    """Return an HTTP server.

    It closes a connection when the headers of a request do not arrive in ``read_seconds``, or when no request
    starts for ``idle_seconds``.
    """
    return _Config(application, host, port, read_seconds=read_seconds, timeout_keep_alive=idle_seconds)


def https(
    application: Any, host: str, port: int, context: ssl.SSLContext, max_connections: int | None = None
) -> uvicorn.Config:
    """Return an HTTPS server. Changes of the context apply to the next connection.

    Requests on connections beyond ``max_connections`` receive status 503. Headers must arrive in 30 seconds.
    """
    config = _Config(application, host, port, limit_concurrency=max_connections)
    config.load()
    config.ssl = context
    return config


async def serve(configs: Iterable[uvicorn.Config], background: Iterable[Coroutine[Any, Any, None]] = ()) -> None:
    """Run servers and background tasks until SIGTERM or SIGINT, or until one of them ends. Raises its error.

    Raises EndpointError when a server cannot listen.
    """
    with contextlib.ExitStack() as stack:
        # uvicorn would end the process with a traceback.
        bound = [(_Server(each), stack.enter_context(_listen(each))) for each in configs]
        await _serve(bound, background)


def _listen(config: uvicorn.Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:
        return socket.create_server((config.host, config.port), family=family, backlog=config.backlog)
    except OSError as error:
        address = f"[{config.host}]:{config.port}" if family is socket.AF_INET6 else f"{config.host}:{config.port}"
        reason = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
        raise EndpointError(f"Cannot listen on {address}: {reason}. Choose another address or port.") from None


async def _serve(
    bound: Iterable[tuple[_Server, socket.socket]], background: Iterable[Coroutine[Any, Any, None]]
) -> None:
    servers = [server for server, _ in bound]
    serving = [asyncio.create_task(server.serve([listener])) for server, listener in bound]
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
