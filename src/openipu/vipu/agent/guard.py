# SPDX-License-Identifier: GPL-3.0-or-later
"""Request decoding and metrics for the handlers of an agent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from openipu.vipu.metrics.catalog import MACHINE
from openipu.vipu.metrics.meters import Calls


class AgentGuard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Wrapper of a handler. It counts calls, and returns INVALID_ARGUMENT for invalid requests."""

    def __init__(self, handler: grpc.GenericRpcHandler) -> None:
        self._handler = handler
        self.meters = Calls(MACHINE, "ipum")
        self._counters: dict[str, Callable[[str, float], None]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the guarded handler of a call, None for an unknown method."""
        handler = self._handler.service(handler_call_details)
        if handler is None:
            return None
        method, read = handler_call_details.method, handler.request_deserializer
        count = self._counters.get(method)
        if count is None:
            count = self._counters[method] = self.meters.of(method, timed=not handler.response_streaming)

        async def unary(data: bytes, context: Any) -> Any:
            with _counted(count, context):
                return await handler.unary_unary(await _read(read, data, method, context), context)

        async def stream(data: bytes, context: Any) -> AsyncIterator[Any]:
            with _counted(count, context):
                async for reply in handler.unary_stream(await _read(read, data, method, context), context):
                    yield reply

        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(stream, response_serializer=handler.response_serializer)
        return grpc.unary_unary_rpc_method_handler(unary, response_serializer=handler.response_serializer)


async def _read(read: Any, data: bytes, method: str, context: Any) -> Any:
    try:
        return read(data)
    except DecodeError:
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT, f"Cannot decode the request of {method}: it is not a valid message."
        )


@contextlib.contextmanager
def _counted(count: Callable[[str, float], None], context: Any) -> Iterator[None]:
    start, code = time.perf_counter(), grpc.StatusCode.OK
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):  # the client cancelled the call
        code = grpc.StatusCode.CANCELLED
        raise
    except BaseException:
        # Without a status from the handler, gRPC returns UNKNOWN.
        status = context.code()
        code = status if isinstance(status, grpc.StatusCode) else grpc.StatusCode.UNKNOWN
        raise
    finally:
        count(code.name, time.perf_counter() - start)
