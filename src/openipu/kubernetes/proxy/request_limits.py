# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of requests to an ASGI application: size of a body, seconds until it has arrived, and for the answer.

Some calls need no authentication. So no caller can fill the memory of the proxy, whatever it sends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

MAX_BYTES = 256 * 1024  # of a body; the largest one has the labels of a node
_BUFFERED_BYTES = 16 * 1024 * 1024  # of all bodies up to this size together
_LARGE_BODIES = 1  # larger ones at the same time


class _RejectedError(Exception):
    """Raised for a body that is not read to its end."""

    error_code = "OPU603"

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class RequestLimits:
    """Application with limits. A request beyond them gets status 408, 413 or 503 with a reason and a message."""

    def __init__(
        self, app: Application, read_seconds: float, write_seconds: float, large: Mapping[str, int] | None = None
    ) -> None:
        """``large``: path -> most bytes of its bodies, instead of ``MAX_BYTES``."""
        self._app = app
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._large = dict(large or {})
        self._buffered = 0  # bytes of bodies in memory, without large ones
        self._slots = asyncio.Semaphore(_LARGE_BODIES)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._large.get(scope["path"], MAX_BYTES)
        try:
            if _declared(scope) > 2 * limit:
                raise _too_large(limit)
            if limit > MAX_BYTES:
                async with asyncio.timeout(self._read_seconds):
                    await self._slots.acquire()
                try:
                    await self._serve(scope, receive, send, limit)
                finally:
                    self._slots.release()
            else:
                await self._serve(scope, receive, send, limit)
        except TimeoutError:
            await _fail(send, 408, "Unavailable", "The request was not served in time. Try again.")
        except _RejectedError as error:
            await _fail(send, error.status, error.reason, str(error))

    async def _serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, limit: int) -> None:
        """Read a body, and pass it to the application. Raises TimeoutError and _RejectedError before the answer."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if limit > MAX_BYTES:
                return
            if self._buffered + size > _BUFFERED_BYTES:
                raise _RejectedError(503, "Unavailable", "The proxy has too many requests. Try again.")
            self._buffered, held = self._buffered + size, held + size

        try:
            async with asyncio.timeout(self._read_seconds):
                body = await _body(receive, limit, hold)
            await self._answer(scope, receive, send, body)
        finally:
            self._buffered -= held

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, send: Send, body: Message) -> None:
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        messages = [body]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        try:
            async with asyncio.timeout(self._write_seconds):
                await self._app(scope, replay, note)
        except TimeoutError as error:
            if started:  # too late for another answer: the server closes the connection
                raise RuntimeError("The answer was not complete in time.") from error
            message = "The request was not served in time. Try again."
            raise _RejectedError(503, "Unavailable", message) from None


def _declared(scope: Mapping[str, Any]) -> int:
    """Return the declared size of a body, 0 if there is none."""
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(text) if text.isdigit() else 0


async def _body(receive: Receive, limit: int, hold: Callable[[int], None]) -> Message:
    """Return the whole request as one message, or the message that the client has disconnected.

    ``hold`` is called with the size of each part. Raises _RejectedError. A client that still sends would not see the
    answer, so a body of up to twice the limit is read to its end before.
    """
    body, dropped = bytearray(), 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        part = message.get("body", b"")
        if dropped or len(body) + len(part) > limit:
            dropped += len(part)
            if dropped > limit or not message.get("more_body", False):
                raise _too_large(limit)
            continue
        hold(len(part))
        body += part
        if not message.get("more_body", False):
            return {"type": "http.request", "body": bytes(body), "more_body": False}


def _too_large(limit: int) -> _RejectedError:
    return _RejectedError(413, "TooLarge", f"The body has more than {limit} bytes. Send a smaller one.")


async def _fail(send: Send, status: int, reason: str, message: str) -> None:
    body = json.dumps({"reason": reason, "message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status != 503:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
