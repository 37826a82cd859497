# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies of requests, with limits of their size, of the time until they have arrived, and of their memory.

Most calls cannot be authenticated before their body has arrived. So no client can fill the memory of a program, and
slow clients cannot keep others waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class BodyTooLargeError(Exception):
    """Raised for a body above the limit."""

    error_code = "OPU603"

    def __init__(self, limit: int) -> None:
        super().__init__(f"The body has more than {limit} bytes. Send a smaller one.")


class BodyTimeoutError(Exception):
    """Raised for a body that does not arrive in time."""

    error_code = "OPU622"


class BufferFullError(Exception):
    """Raised when there is no memory for a body."""

    error_code = "OPU622"

    def __init__(self) -> None:
        super().__init__("There are too many requests at present. Try again.")


@dataclass(eq=False, slots=True)
class _Body:
    """A body in memory. ``deadline``: until it must have arrived."""

    deadline: asyncio.Timeout
    size: int = 0
    has_lost: bool = False  # another body has received its memory


class BodyBuffer:
    """Memory for bodies. When it is full, the oldest body that still arrives is rejected.

    So slow clients do not keep those waiting that send at once.
    """

    def __init__(self, max_bytes: int) -> None:
        self._free = max_bytes
        self._arriving: dict[_Body, None] = {}  # the oldest one first

    @contextlib.asynccontextmanager
    async def read(self, receive: Receive, limit: int, seconds: float) -> AsyncIterator[Message]:
        """Yield a whole request as one message, or the message that the client has disconnected.

        Its memory is free again at the end. Raises BodyTooLargeError, BodyTimeoutError and BufferFullError.
        """
        body = _Body(asyncio.timeout(seconds))
        try:
            self._arriving[body] = None
            try:
                async with body.deadline:
                    message = await self._receive(receive, limit, body)
            except TimeoutError:
                if body.has_lost:
                    raise BufferFullError from None
                raise BodyTimeoutError(f"The body has not arrived within {seconds:g} s. Send it again.") from None
            finally:
                del self._arriving[body]
            yield message
        finally:
            self._free += body.size

    async def _receive(self, receive: Receive, limit: int, body: _Body) -> Message:
        """Return a whole request. A client that still sends would not see the answer.

        So a body of up to twice the limit is read to its end before it is rejected.
        """
        parts, dropped = bytearray(), 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return message
            part = message.get("body", b"")
            if dropped or len(parts) + len(part) > limit:
                dropped += len(part)
                if dropped > limit or not message.get("more_body", False):
                    raise BodyTooLargeError(limit)
                continue
            self._hold(body, len(part))
            parts += part
            if not message.get("more_body", False):
                return {"type": "http.request", "body": bytes(parts), "more_body": False}

    def _hold(self, body: _Body, size: int) -> None:
        """Take memory for a part of a body. Raises BufferFullError."""
        if body.has_lost:
            raise BufferFullError
        for oldest in self._arriving:
            if self._free >= size or oldest is body:
                break
            self._take_back(oldest)
        if self._free < size:
            raise BufferFullError
        self._free -= size
        body.size += size

    def _take_back(self, body: _Body) -> None:
        """End the arrival of a body, and free its memory."""
        if not body.size:
            return
        self._free += body.size
        body.size, body.has_lost = 0, True
        if not body.deadline.expired():
            body.deadline.reschedule(asyncio.get_running_loop().time())
