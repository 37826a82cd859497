# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of requests, in a real HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request

from openipu.kubernetes.proxy.request_limits import MAX_BYTES, RequestLimits

app = FastAPI()


@app.post("/size")
async def size(request: Request) -> int:
    return len(await request.body())


@app.post("/slow")
async def slow() -> None:
    await asyncio.Event().wait()


LARGE = {"/large": 4 * MAX_BYTES}


@app.post("/large")
async def large(request: Request) -> int:
    return len(await request.body())


@contextlib.asynccontextmanager
async def serving(seconds: float) -> AsyncIterator[int]:
    """Serve the application, and yield the port."""
    config = uvicorn.Config(
        RequestLimits(app, seconds, seconds, LARGE), "127.0.0.1", 0, log_config=None, lifespan="off"
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await task


async def begin(port: int, path: str, length: int | None, *chunks: bytes) -> tuple[Any, Any]:
    """Send a request with a body in chunks. ``length``: None for a chunked transfer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    kind = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    writer.write(f"POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{kind}\r\n\r\n".encode())
    with contextlib.suppress(ConnectionError):  # the server closes early
        for each in chunks:
            writer.write(f"{len(each):x}\r\n".encode() + each + b"\r\n" if length is None else each)
            await writer.drain()
    return reader, writer


async def end(connection: tuple[Any, Any]) -> str:
    """Return the answer to a request."""
    reader, writer = connection
    found = await reader.read()
    writer.close()
    return str(found.decode())


async def respond(path: str, length: int | None, *chunks: bytes, seconds: float = 0.3) -> str:
    """Return the answer to a request with a body in chunks."""
    async with serving(seconds) as port, asyncio.timeout(60):
        return await end(await begin(port, path, length, *chunks))


@pytest.mark.parametrize(
    ("path", "length", "chunks", "status", "text"),
    [
        ("/size", 4, (b"ab", b"cd"), 200, "4"),
        ("/size", 4, (b"ab",), 408, "has not arrived within 0.3 s"),
        ("/large", 4, (b"ab",), 408, "has not arrived within 0.3 s"),
        ("/slow", 0, (), 503, "not served in time"),
    ],
)
def test_late_requests_and_answers_are_rejected(
    path: str, length: int, chunks: tuple[bytes, ...], status: int, text: str
) -> None:
    answer = asyncio.run(respond(path, length, *chunks))
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert text in answer


@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        ("/size", MAX_BYTES, 200),
        ("/size", MAX_BYTES + 1, 413),
        ("/missing", MAX_BYTES + 1, 413),
        ("/large", LARGE["/large"], 200),
        ("/large", LARGE["/large"] + 1, 413),
    ],
)
@pytest.mark.parametrize("declared", [True, False])
def test_large_bodies_are_rejected(path: str, size: int, status: int, declared: bool) -> None:
    chunks = [b"x" * min(65536, size - start) for start in range(0, size, 65536)]
    end = () if declared else (b"",)
    answer = asyncio.run(respond(path, size if declared else None, *chunks, *end, seconds=20.0))
    assert answer.startswith(f"HTTP/1.1 {status} "), answer
    limit = LARGE.get(path, MAX_BYTES)
    assert (str(size) if status == 200 else f"The body has more than {limit} bytes. Send a smaller one.") in answer


def test_a_declared_size_is_checked_before_the_body_arrives() -> None:
    answer = asyncio.run(respond("/size", 10**12, seconds=20.0))
    assert answer.startswith("HTTP/1.1 413 ")


@pytest.mark.parametrize(("path", "limit", "senders"), [("/size", MAX_BYTES, 80), ("/large", LARGE["/large"], 4)])
def test_slow_senders_keep_nobody_waiting(path: str, limit: int, senders: int) -> None:
    """They fill the memory for bodies. The request that is complete is answered long before their time ends."""

    async def run() -> None:
        async with serving(3600.0) as port, asyncio.timeout(60):
            part = b"x" * (limit - 1)
            slow = [await begin(port, path, limit, part) for _ in range(senders)]
            try:
                assert (await end(await begin(port, path, limit, part + b"x"))).endswith(str(limit))
                rejected = await end(slow[0])
                assert rejected.startswith("HTTP/1.1 503 ") and "too many requests" in rejected
                slow[-1][1].write(b"x")  # the newest one still has its memory
                assert (await end(slow[-1])).endswith(str(limit))
            finally:
                for _, writer in slow:
                    writer.close()

    asyncio.run(run())


def test_many_bodies_do_not_fill_the_memory() -> None:
    statuses: list[int] = []
    entered = 0

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal entered
        await receive()
        entered += 1
        await asyncio.Event().wait()

    async def call(limits: RequestLimits) -> None:
        async def receive() -> Any:
            return {"type": "http.request", "body": b"x" * MAX_BYTES}

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        await limits({"type": "http", "path": "/", "headers": []}, receive, send)

    async def run() -> None:
        limits = RequestLimits(application, 20.0, 0.2)
        await asyncio.gather(*(call(limits) for _ in range(200)))
        assert 0 < entered < 200
        assert statuses == [503] * 200  # the others are not answered in time here
        await asyncio.gather(call(limits))  # the memory of former requests is free again
        assert entered == 65

    asyncio.run(run())
