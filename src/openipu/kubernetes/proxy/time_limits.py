# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits of requests to an ASGI application: until a body has arrived, and until the answer is complete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_BODY = json.dumps({"reason": "Unavailable", "message": "The request was not served in time. Try again."}).encode()
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


class TimeLimits:
    """Application with limits in seconds. A late request gets status 408, a late answer 503, both with a reason."""

    def __init__(self, app: Application, read_seconds: float, write_seconds: float) -> None:
        self._app = app
        self._read_seconds = read_seconds
        self._write_seconds = write_seconds

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            async with asyncio.timeout(self._read_seconds):
                body = await _body(receive)
        except TimeoutError:
            await _fail(send, 408)
            return
        messages = [body]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        try:
            async with asyncio.timeout(self._write_seconds):
                await self._app(scope, replay, note)
        except TimeoutError:
            if started:
                raise
            await _fail(send, 503)


async def _body(receive: Receive) -> Message:
    """Return the whole request as one message, or the message that the client has disconnected."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return {"type": "http.request", "body": bytes(body), "more_body": False}


async def _fail(send: Send, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})
