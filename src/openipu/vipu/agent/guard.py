# SPDX-License-Identifier: GPL-3.0-or-later
"""Before the handlers of an agent: what is no request is the caller's mistake and not an internal error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError


class Guard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Reads the requests of another handler, so that garbage is answered with INVALID_ARGUMENT."""

    def __init__(self, handler: grpc.GenericRpcHandler) -> None:
        """See the class."""
        self._handler = handler

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The guarded handler of a call, None for what is not ours."""
        handler = self._handler.service(handler_call_details)
        if handler is None:
            return None
        method, read = handler_call_details.method, handler.request_deserializer

        async def one(data: bytes, context: Any) -> Any:
            return await handler.unary_unary(await _read(read, data, method, context), context)

        async def many(data: bytes, context: Any) -> AsyncIterator[Any]:
            async for reply in handler.unary_stream(await _read(read, data, method, context), context):
                yield reply

        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(many, response_serializer=handler.response_serializer)
        return grpc.unary_unary_rpc_method_handler(one, response_serializer=handler.response_serializer)


async def _read(read: Any, data: bytes, method: str, context: Any) -> Any:
    try:
        return read(data)
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"What was sent is no request of {method}.")
