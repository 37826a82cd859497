# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits of connections of HTTP servers."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from fastapi import FastAPI

from openipu.kubernetes.serving.servers import http, serve
from openipu.process.failures import EndpointError

app = FastAPI()
COMPLETE = b"GET /answer HTTP/1.1\r\nHost: a\r\n\r\n"


@app.get("/answer")
async def answer() -> str:
    return "here"


@app.get("/late")
async def late() -> str:
    await asyncio.sleep(0.5)  # longer than the limit for headers
    return "here"


@contextlib.asynccontextmanager
async def connect(read_seconds: float) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Start a server, and connect to it."""
    server = uvicorn.Server(http(app, "127.0.0.1", 0, read_seconds=read_seconds, idle_seconds=3600))
    task = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection(*server.servers[0].sockets[0].getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()
    finally:
        server.should_exit = True
        await task


@pytest.mark.parametrize(
    ("former", "start"), [(b"", b""), (b"", b"GE"), (b"", COMPLETE[:-2]), (COMPLETE, b"GE"), (COMPLETE, COMPLETE[:-2])]
)
def test_incomplete_headers_close_the_connection(former: bytes, start: bytes) -> None:
    async def run() -> None:
        async with connect(0.2) as (reader, writer), asyncio.timeout(60):
            if former:
                writer.write(former)
                assert (await reader.readuntil(b'"here"')).startswith(b"HTTP/1.1 200 ")
            writer.write(start)
            assert await reader.read() == b""

    asyncio.run(run())


def test_idle_connections_and_slow_answers_are_not_limited() -> None:
    async def run() -> None:
        async with connect(0.2) as (reader, writer), asyncio.timeout(60):
            for path in (b"/late", b"/answer"):
                writer.write(COMPLETE.replace(b"/answer", path))
                assert (await reader.readuntil(b'"here"')).startswith(b"HTTP/1.1 200 ")
                await asyncio.sleep(0.5)

    asyncio.run(run())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_in_use_is_one_message(host: str) -> None:
    family = socket.AF_INET6 if host == "::1" else socket.AF_INET
    with socket.create_server((host, 0), family=family) as other:
        port = other.getsockname()[1]
        address = f"[{host}]:{port}" if host == "::1" else f"{host}:{port}"
        with pytest.raises(EndpointError) as caught:
            asyncio.run(serve([http(app, host, 0), http(app, host, port)]))
    assert str(caught.value) == f"Cannot listen on {address}: address already in use. Choose another address or port."
