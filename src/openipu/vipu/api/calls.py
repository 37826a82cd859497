# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers of single calls, in the form that gRPC expects."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from openipu.vipu.api.admission import Immediate, Ticket
from openipu.vipu.api.auth import Authenticator, Caller
from openipu.vipu.api.exchange import CancelledError, Exchanges, NoRequestError
from openipu.vipu.api.methods import Method
from openipu.vipu.api.reply_stream import ReplyStream

RIGHTS_SECONDS = 0.1  # since the last check of a caller until a request requires another one


class RejectedCall:
    """Handler of a call that ends before its request is read."""

    request_streaming, response_streaming = True, False
    request_deserializer = response_serializer = None

    def __init__(self, method: Method, caller: Caller, error: Exception, pool: Immediate) -> None:
        """Reject a call of a method with the status of an error."""
        self.experimental_thread_pool = pool
        self.stream_unary = self
        self._method = method
        self._caller = caller
        self._error = error
        self._start = time.perf_counter()

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        """End the call with its status."""
        return self._method.fail(context, self._caller, self._start, self._error)


class Call:
    """Handler of one call with one reply."""

    __slots__ = (
        "_admitted",
        "_authenticator",
        "_caller",
        "_exchanges",
        "_method",
        "_ticket",
        "experimental_thread_pool",
        "response_serializer",
    )

    request_streaming, response_streaming = True, False
    request_deserializer = None  # ``Method.read`` decodes, so that invalid bytes return INVALID_ARGUMENT, not INTERNAL

    def __init__(
        self,
        method: Method,
        caller: Caller,
        ticket: Ticket,
        exchanges: Exchanges,
        authenticator: Authenticator | None,
    ) -> None:
        """Handle an admitted call. ``authenticator``: check of the certificate, None if the method needs none."""
        self.experimental_thread_pool = ticket.pool
        self.response_serializer = method.encode
        self._admitted = time.monotonic()
        self._method = method
        self._caller = caller
        self._ticket = ticket
        self._exchanges = exchanges
        self._authenticator = authenticator

    @property
    def stream_unary(self) -> Call:
        """The function that gRPC calls."""
        return self

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        """Return the reply, or end the call with a status."""
        try:
            return self._answer(requests, context)
        finally:
            self._ticket.release()

    def _answer(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        start = time.perf_counter()
        method, caller = self._method, self._caller
        try:
            self._begin(context)
            request = method.read(self._exchanges.receive(requests, context))
            if time.monotonic() - self._admitted > RIGHTS_SECONDS:
                caller = self._present_caller(context)
            reply = method.call(request, caller)
        except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
            return method.fail(context, caller, start, error)
        method.succeed(context, caller, start, request, reply)
        self._exchanges.send(context)
        return reply

    def _begin(self, context: grpc.ServicerContext) -> None:
        """Hold the ticket until the call has ended, and check the certificate, which metadata do not contain.

        Raises AuthError, and CancelledError when the call has ended already.
        """

        def end() -> None:
            self._exchanges.end(context)
            self._ticket.release()

        self._ticket.hold(context.cancel)
        if not context.add_callback(end):
            self._ticket.release()
            raise CancelledError
        self._check(context)

    def _check(self, context: grpc.ServicerContext) -> None:
        """Check that the call is running, and its certificate. Raises CancelledError and AuthError."""
        if not context.is_active():  # the client gave up while the call was queued
            raise CancelledError
        if self._authenticator is not None:
            self._authenticator.check_certificate(self._caller, context.auth_context())

    def _present_caller(self, context: grpc.ServicerContext) -> Caller:
        """Return the caller of a running call with its present rights. Raises AuthError and RuleError."""
        caller = self._caller
        if self._authenticator is not None:
            caller = self._authenticator(context.invocation_metadata())
            self._authenticator.check_certificate(caller, context.auth_context())
        self._method.check(caller)
        return caller


class StreamingCall(Call):
    """Handler of one call with a stream of replies."""

    __slots__ = ()

    response_streaming = True

    @property
    def stream_stream(self) -> StreamingCall:
        """The function that gRPC calls."""
        return self

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield the replies, and end the call with a status."""
        try:
            yield from self._answer(requests, context)
        finally:
            self._ticket.release()

    def _answer(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
        start = time.perf_counter()
        method, caller = self._method, self._caller
        try:
            self._begin(context)
            source = self._stream(requests, context)
            request = source if method.streams_requests else next(source)
            for reply in method.behaviour(request, caller, context):
                self._exchanges.send(context)
                yield reply
                self._exchanges.end(context)
        except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
            method.fail(context, caller, start, error)
        method.succeed(context, caller, start, None, None)

    def _stream(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield the requests. Raises AuthError and RuleError when the rights of the caller ended during the call."""
        checked = self._admitted
        while True:
            try:
                request = self._method.read(self._exchanges.receive(requests, context))
            except NoRequestError:
                if not self._method.streams_requests:
                    raise
                return
            if time.monotonic() - checked > RIGHTS_SECONDS:
                self._present_caller(context)
                checked = time.monotonic()
            yield request


class StartedStream(Call):
    """Handler of one call whose method starts a stream and returns. The stream holds neither a thread nor a ticket."""

    __slots__ = ()

    response_streaming = True
    experimental_non_blocking = True

    @property
    def stream_stream(self) -> StartedStream:
        """The function that gRPC calls."""
        return self

    def __call__(  # type: ignore[override]
        self, requests: Iterator[bytes], context: grpc.ServicerContext, finish: Callable[[None], None]
    ) -> None:
        """Start the stream. ``finish`` sends the status."""
        start = time.perf_counter()
        method, caller = self._method, self._caller

        def fail(error: Exception) -> None:
            code, message = method.record_failure(context, caller, start, error)
            context.set_code(code)
            context.set_details(message)
            finish(None)

        try:
            self._check(context)
            request = method.read(self._exchanges.receive(requests, context))
            stream = ReplyStream(context, method.encode, lambda: self._present_caller(context), fail)
            method.behaviour(request, caller, stream)
        except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
            fail(error)
        finally:
            self._ticket.release()
