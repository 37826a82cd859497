# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP relay between a program and its servers, which counts the writes of the program and can interrupt them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType

import aiohttp
import yaml
from aiohttp import web

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Writes that change nothing of a job: the lease of the leader, and checks of tokens.
_NOT_COUNTED = ("/leases", "/tokenreviews", "/subjectaccessreviews")
_DROPPED = frozenset({"host", "content-length", "transfer-encoding", "content-encoding", "connection"})

Hook = Callable[[int, str], Awaitable[None]]
"""Called with the number of a write, from 1, and its method and path."""


class DropError(Exception):
    """Raised by ``before`` to drop a write: the server does not receive it."""


async def _nothing(number: int, write: str) -> None:
    pass


class Relay:
    """Asynchronous context manager. ``before`` runs before a write is sent on, ``after`` before it is answered.

    ``writes``: method and path of all writes since the last ``reset``.
    """

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.before: Hook = _nothing
        self.after: Hook = _nothing
        self._runners: list[web.AppRunner] = []
        self._held = ""
        self._opened = asyncio.Event()

    def hold(self, path: str) -> None:
        """Hold back all answers for paths with this text, such as streams of changes, until ``release``."""
        self._held, self._opened = path, asyncio.Event()

    def release(self) -> None:
        """Send the answers that are held back."""
        self._held = ""
        self._opened.set()

    async def __aenter__(self) -> Relay:
        # Without limits: each watch holds a connection.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._runners:
            await each.cleanup()
        await self._session.close()

    def reset(self, before: Hook = _nothing, after: Hook = _nothing) -> None:
        """Count from the beginning, with other hooks."""
        self.writes, self.before, self.after = [], before, after

    async def listen(self, target: str, ca: Path | None = None) -> str:
        """Relay requests to a server. Return the URL for the program."""
        context = ssl.create_default_context(cafile=str(ca)) if ca else None

        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._relay(request, target, context)

        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        self._runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def kubeconfig(self, original: Path, copy: Path) -> Path:
        """Write a copy of a configuration that leads through the relay."""
        config = yaml.safe_load(original.read_text())
        (cluster,) = config["clusters"]
        server, ca = cluster["cluster"]["server"], Path(cluster["cluster"]["certificate-authority"])
        cluster["cluster"] = {"server": await self.listen(server, ca)}
        copy.write_text(yaml.safe_dump(config))
        return copy

    async def _relay(self, request: web.Request, target: str, context: ssl.SSLContext | None) -> web.StreamResponse:
        body = await request.read()
        counted = request.method in _WRITES and not any(each in request.path for each in _NOT_COUNTED)
        write, number = f"{request.method} {request.path}", 0
        if counted:
            self.writes.append(write)
            number = len(self.writes)
            try:
                await self.before(number, write)
            except DropError:
                raise web.HTTPBadGateway from None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _DROPPED}
        async with self._session.request(
            request.method, target + request.raw_path, data=body, headers=headers, ssl=context or True
        ) as answer:
            if counted:
                await answer.read()
                await self.after(number, write)
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _DROPPED}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            if counted:
                await response.write(await answer.read())
            else:
                async for chunk in answer.content.iter_any():
                    if self._held and self._held in request.path:
                        await self._opened.wait()
                    await response.write(chunk)
            await response.write_eof()
            return response
