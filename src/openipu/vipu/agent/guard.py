# SPDX-License-Identifier: GPL-3.0-or-later
"""Before the handlers of an agent: what is no request is the caller's mistake, and every answer counts."""

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


class Guard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Reads the requests of another handler, so that garbage is answered with INVALID_ARGUMENT."""

    def __init__(self, handler: grpc.GenericRpcHandler) -> None:
        """See the class."""
        self._handler = handler
        self.meters = Calls(MACHINE, "ipum")
        self._answered: dict[str, Callable[[str, float], None]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The guarded handler of a call, None for what is not ours."""
        handler = self._handler.service(handler_call_details)
        if handler is None:
            return None
        method, read = handler_call_details.method, handler.request_deserializer
        answered = self._answered.get(method)
        if answered is None:
            answered = self._answered[method] = self.meters.of(method, timed=not handler.response_streaming)

        async def one(data: bytes, context: Any) -> Any:
            with _counted(answered, context):
                return await handler.unary_unary(await _read(read, data, method, context), context)

        async def many(data: bytes, context: Any) -> AsyncIterator[Any]:
            with _counted(answered, context):
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


@contextlib.contextmanager
def _counted(answered: Callable[[str, float], None], context: Any) -> Iterator[None]:
    start, code = time.perf_counter(), grpc.StatusCode.OK
    try:
        yield
    except (asyncio.CancelledError, GeneratorExit):  # the caller went away
        code = grpc.StatusCode.CANCELLED
        raise
    except BaseException:
        # What it was ended with; else gRPC tells the caller that it is not known.
        told = context.code()
        code = told if isinstance(told, grpc.StatusCode) else grpc.StatusCode.UNKNOWN
        raise
    finally:
        answered(code.name, time.perf_counter() - start)
