# SPDX-License-Identifier: GPL-3.0-or-later
"""Ownership, request decoding and metrics for the handlers of an agent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from openipu.vipu.agent.ownership import Ownership, caller, reject
from openipu.vipu.metrics.catalog import MACHINE
from openipu.vipu.metrics.meters import Calls

RECEIVE_SECONDS = 10.0  # until a request has arrived

# Properties of the authentication context of gRPC with the names in a certificate.
_NAMES = ("x509_common_name", "x509_subject_alternative_name")
# Methods for callers that are not the owner. Watch and TakeOver have rules of their own.
_OPEN = ("Watch", "TakeOver", "GetInfo", "ListIpuAttributes", "ReadCables", "ReadSync", "ReadPfc")


class AgentGuard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Wrapper of a handler.

    It counts calls, rejects clients that are not controllers and changes by others than the owner, and returns
    INVALID_ARGUMENT for invalid requests. Rejected clients cannot occupy memory: for gRPC, every request is a stream,
    because it would read a single request before it calls the handler.
    """

    def __init__(
        self, handler: grpc.GenericRpcHandler, ownership: Ownership, controllers: frozenset[str] | None = None
    ) -> None:
        """Wrap ``handler``. ``controllers``: accepted names in certificates, None for connections without TLS."""
        self._handler = handler
        self._ownership = ownership
        self._controllers = controllers
        self.meters = Calls(MACHINE, "ipum")
        self._counters: dict[str, Callable[[str, float], None]] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the guarded handler of a call, None for an unknown method."""
        handler = self._handler.service(handler_call_details)
        if handler is None:
            return None
        method, read = handler_call_details.method, handler.request_deserializer
        is_open = method.rpartition("/")[2] in _OPEN
        count = self._counters.get(method)
        if count is None:
            count = self._counters[method] = self.meters.of(method, timed=not handler.response_streaming)

        async def unary(requests: AsyncIterator[bytes], context: Any) -> Any:
            with _counted(count, context):
                await self._check_controller(context)
                if not is_open:
                    await reject(self._ownership.rejection(caller(context)), context)
                return await handler.unary_unary(await _read(read, requests, method, context), context)

        async def stream(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
            with _counted(count, context):
                await self._check_controller(context)
                async for reply in handler.unary_stream(await _read(read, requests, method, context), context):
                    yield reply

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(stream, response_serializer=handler.response_serializer)
        return grpc.stream_unary_rpc_method_handler(unary, response_serializer=handler.response_serializer)

    async def _check_controller(self, context: Any) -> None:
        if self._controllers is None or is_controller(context.auth_context(), self._controllers):
            return
        await context.abort(
            grpc.StatusCode.PERMISSION_DENIED,
            "Cannot accept the call: the certificate is not that of a controller of this agent. Check its name and "
            "--tls-controller of the agent.",
        )


def is_controller(certificate: Mapping[str, Iterable[bytes]], names: frozenset[str]) -> bool:
    """Return whether a client certificate has one of the names. ``certificate``: authentication context of gRPC."""
    found = (name for property in _NAMES for name in certificate.get(property, ()))
    return any(name.decode(errors="replace") in names for name in found)


async def _read(read: Any, requests: AsyncIterator[bytes], method: str, context: Any) -> Any:
    """Return the only request of a call, or abort the call."""
    try:
        async with asyncio.timeout(RECEIVE_SECONDS):
            data = await anext(requests, None)
    except TimeoutError:
        await context.abort(
            grpc.StatusCode.DEADLINE_EXCEEDED,
            f"Cannot read the request of {method}: it did not arrive within {RECEIVE_SECONDS:g} s. Try again.",
        )
    if data is None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{method!r} requires exactly one request message.")
    try:
        return read(data)
    except DecodeError:
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"Cannot decode the request of {method}: it is not a valid message. Use the same release on both sides.",
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
