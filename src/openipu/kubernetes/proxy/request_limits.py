# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of requests to an ASGI application: size of a body, seconds until it has arrived, and for the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from openipu.kubernetes.serving.bodies import (
    BodyBuffer,
    BodyTimeoutError,
    BodyTooLargeError,
    BufferFullError,
    Message,
    Receive,
)

Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

MAX_BYTES = 256 * 1024  # of a body; the largest one has the labels of a node
_BUFFERED_BYTES = 16 * 1024 * 1024  # of all bodies up to this size together
_LARGE_BODIES = 2  # in memory for each path with larger ones: one arrives while the other one is answered
_LARGE_SECONDS = 10.0  # for the answer to a larger body, so that its memory is free again soon

# Exception -> status and reason of the answer.
_FAILURES: dict[type[Exception], tuple[int, str]] = {
    BodyTooLargeError: (413, "TooLarge"),
    BodyTimeoutError: (408, "Unavailable"),
    BufferFullError: (503, "Unavailable"),
}


class _LateAnswerError(Exception):
    """Raised when the application has not begun its answer in time."""

    error_code = "OPU622"


class RequestLimits:
    """Application with limits. A request beyond them gets status 408, 413 or 503 with a reason and a message."""

    def __init__(
        self, app: Application, read_seconds: float, write_seconds: float, large: Mapping[str, int] | None = None
    ) -> None:
        """``large``: path -> most bytes of its bodies, instead of ``MAX_BYTES``. Each path has its own memory."""
        self._app = app
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds
        self._bodies = BodyBuffer(_BUFFERED_BYTES)
        self._large = {path: (limit, BodyBuffer(_LARGE_BODIES * limit)) for path, limit in (large or {}).items()}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit, bodies, seconds = MAX_BYTES, self._bodies, self._write_seconds
        if scope["path"] in self._large:
            limit, bodies = self._large[scope["path"]]
            seconds = min(seconds, _LARGE_SECONDS)
        try:
            if _declared(scope) > 2 * limit:
                raise BodyTooLargeError(limit)
            async with bodies.read(receive, limit, self._read_seconds) as body:
                await self._answer(scope, receive, send, body, seconds)
        except _LateAnswerError as error:
            await _fail(send, 503, "Unavailable", str(error))
        except tuple(_FAILURES) as error:
            await _fail(send, *_FAILURES[type(error)], str(error))

    async def _answer(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, body: Message, seconds: float
    ) -> None:
        """Pass a request to the application. Raises _LateAnswerError before the answer."""
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        messages = [body]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        try:
            async with asyncio.timeout(seconds):
                await self._app(scope, replay, note)
        except TimeoutError as error:
            if started:  # too late for another answer: the server closes the connection
                raise RuntimeError("The answer was not complete in time. Try again.") from error
            raise _LateAnswerError("The request was not served in time. Try again.") from None


def _declared(scope: Mapping[str, Any]) -> int:
    """Return the declared size of a body, 0 if there is none."""
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(text) if text.isdigit() else 0


async def _fail(send: Send, status: int, reason: str, message: str) -> None:
    body = json.dumps({"reason": reason, "message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
