# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits of requests, in a real HTTP server."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn
from fastapi import FastAPI, Request

from openipu.kubernetes.proxy.time_limits import TimeLimits

app = FastAPI()


@app.post("/size")
async def size(request: Request) -> int:
    return len(await request.body())


@app.post("/slow")
async def slow() -> None:
    await asyncio.Event().wait()


async def respond(path: str, length: int, *chunks: bytes) -> str:
    """Return the answer to a request with a body in chunks."""
    config = uvicorn.Config(TimeLimits(app, 0.3, 0.3), "127.0.0.1", 0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n".encode()
            )
            for each in chunks:
                writer.write(each)
                await writer.drain()
            found = await reader.read()
            writer.close()
            return found.decode()
    finally:
        server.should_exit = True
        await serving


@pytest.mark.parametrize(
    ("path", "length", "chunks", "status", "text"),
    [
        ("/size", 4, (b"ab", b"cd"), 200, "4"),
        ("/size", 4, (b"ab",), 408, "not served in time"),
        ("/slow", 0, (), 503, "not served in time"),
    ],
)
def test_late_requests_and_answers_are_rejected(
    path: str, length: int, chunks: tuple[bytes, ...], status: int, text: str
) -> None:
    answer = asyncio.run(respond(path, length, *chunks))
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert text in answer
