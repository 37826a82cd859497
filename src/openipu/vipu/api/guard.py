# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication, authorisation, limits, errors, metrics and logs of every call."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import grpc
import structlog

from openipu.shared.vipu.client import ERROR_CODE_METADATA
from openipu.vipu.api.admission import Admission, Group, Immediate, Ticket
from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR, Authenticator, AuthError, Caller
from openipu.vipu.api.exchange import CancelledError, Exchanges, NoRequestError
from openipu.vipu.api.reply_stream import ReplyStream
from openipu.vipu.api.status import error_code, status
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.metrics.meters import Calls

_log = structlog.get_logger("openipu.vipu.api.guard")

# Bytes of an ordinary request; ``large_requests`` marks exceptions. A list of a thousand names takes a tenth
# of it, and a decoded message takes many times its encoded size.
_MAX_REQUEST = 1 << 20

_READS = ("Get", "List", "Count", "Check", "Watch")  # prefixes of the names of read-only methods
_REJECTED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_LONGEST_ID = 63  # characters of an unverified user id in the log

_Function = TypeVar("_Function", bound=Callable[..., Any])


def waits_for_agents(method: _Function) -> _Function:
    """Mark a method that may wait long for IPU-Machines, to run it in a separate thread pool."""
    method.waits_for_agents = True  # type: ignore[attr-defined]
    return method


def large_requests(method: _Function) -> _Function:
    """Mark a method of administrators whose requests may have the maximum message size."""
    method.large_requests = True  # type: ignore[attr-defined]
    return method


def non_blocking(method: _Function) -> _Function:
    """Mark a method that starts a stream of replies and returns. It receives a ``ReplyStream`` too."""
    method.non_blocking = True  # type: ignore[attr-defined]
    return method


class RequestGuard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Wrapper of the service handlers.

    Handlers receive a ``Caller`` instead of the gRPC context, or both if they stream replies. Their exceptions become
    a status with one message. It is a handler, not an interceptor, because a handler costs less per call.

    A call is authenticated and admitted by its metadata alone, before a thread reads its request. For this, gRPC
    regards every request as a stream: it would read a single request itself, without a time limit.
    """

    def __init__(
        self,
        authenticator: Authenticator | None,
        handlers: Mapping[str, grpc.GenericRpcHandler],
        *,
        unauthenticated: Iterable[str],
        admin_only: Iterable[str],
        groups: Mapping[str, Group],
        admission: Admission,
        exchanges: Exchanges,
        meters: Calls,
    ) -> None:
        """Wrap ``handlers``, a map of full service names. Without authenticator all calls are allowed.

        Services in ``unauthenticated`` need no credentials. ``groups``: services whose calls have limits of their
        own; the limits of others depend on the caller. ``meters`` counts all calls.
        """
        self._authenticator = authenticator
        self._handlers = dict(handlers)
        self._unauthenticated = frozenset(unauthenticated)
        self._admin_only = frozenset(admin_only)
        self._groups = dict(groups)
        self._admission = admission
        self._exchanges = exchanges
        self._meters = meters
        self._methods: dict[str, _Method] = {}
        self._immediate = Immediate()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of one call, None for an unknown method. This runs in the only thread of gRPC."""
        method = self._methods.get(handler_call_details.method) or self._find(handler_call_details)
        if method is None:
            return None
        caller = UNAUTHENTICATED_ADMINISTRATOR
        try:
            group = Group.ADMINISTRATORS
            if self._authenticator is not None:
                group, caller = self._identify(method, handler_call_details.invocation_metadata)
            method.check(caller)
            ticket = self._admission.admit(method.group or group, caller.user, slow=method.slow)
        except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
            return _RejectedCall(method, caller, error, self._immediate)
        authenticator = None if method.unauthenticated else self._authenticator
        if method.non_blocking:
            return _StartedStream(method, caller, ticket, self._exchanges, authenticator, self._present_caller)
        kind = _StreamingCall if method.streams_replies else _Call
        return kind(method, caller, ticket, self._exchanges, authenticator)

    def _identify(self, method: _Method, metadata: Any) -> tuple[Group, Caller]:
        """Return the caller and its group. Raises AuthError, unless the method needs no credentials."""
        assert self._authenticator is not None
        try:
            caller = self._authenticator(metadata)
        except AuthError:
            if not method.unauthenticated:
                raise
            return Group.ANONYMOUS, UNAUTHENTICATED_ADMINISTRATOR
        return Group.ADMINISTRATORS if caller.allowed is None else Group.USERS, caller

    def _present_caller(self, method: _Method, context: grpc.ServicerContext) -> Caller:
        """Return the caller of a running call with its present rights. Raises AuthError and RuleError."""
        caller = UNAUTHENTICATED_ADMINISTRATOR
        if self._authenticator is not None:
            caller = self._identify(method, context.invocation_metadata())[1]
            self._authenticator.check_certificate(caller, context.auth_context())
        method.check(caller)
        return caller

    def _find(self, details: grpc.HandlerCallDetails) -> _Method | None:
        path = details.method
        service = path.rpartition("/")[0][1:]
        inner = self._handlers.get(service)
        handler = inner and inner.service(details)
        if handler is None:
            return None
        method = self._methods[path] = _Method(
            path, handler, self._meters.of(path, timed=not handler.response_streaming)
        )
        method.unauthenticated = service in self._unauthenticated
        method.admin_only = service in self._admin_only
        method.group = self._groups.get(service)
        return method


class _Method:
    """A method, and how its calls are treated and reported."""

    unauthenticated = admin_only = False
    group: Group | None = None  # None: that of the caller

    def __init__(self, path: str, handler: Any, count: Callable[[str, float], None]) -> None:
        self.path = path
        self.name = path.rpartition("/")[2]
        self.streams_requests = handler.request_streaming
        self.streams_replies = handler.response_streaming
        self.behaviour = (
            handler.stream_stream
            if self.streams_requests
            else handler.unary_stream
            if self.streams_replies
            else handler.unary_unary
        )
        self.decode = handler.request_deserializer
        self.encode = handler.response_serializer
        self.slow = getattr(self.behaviour, "waits_for_agents", False)
        self.non_blocking = getattr(self.behaviour, "non_blocking", False)
        self._bounded = not getattr(self.behaviour, "large_requests", False)
        self._writes = not self.name.startswith(_READS)
        self._count = count

    def check(self, caller: Caller) -> None:
        """Raise RuleError when the caller may not use this method."""
        if self.admin_only and caller.allowed is not None:
            raise RuleError(
                Code.PERMISSION_DENIED,
                f"Cannot call {self.name}: only administrators may do this. Use the key of an administrator.",
            )

    def read(self, data: bytes) -> Any:
        """Return a request. Raises RuleError and DecodeError."""
        if self._bounded and len(data) > _MAX_REQUEST:
            raise RuleError(
                Code.RESOURCE_EXHAUSTED,
                f"Cannot read the request of {self.path}: it has {len(data)} bytes; the limit is {_MAX_REQUEST}.",
            )
        return self.decode(data)

    def succeed(self, context: grpc.ServicerContext, caller: Caller, start: float, request: Any, reply: Any) -> None:
        """Record a call without error."""
        seconds = time.perf_counter() - start
        self._count("OK", seconds)
        if self._writes and _changed(request, reply):
            _log.info(
                "request completed",
                method=self.path,
                object=_object_id(request),
                user=caller.user,
                peer=context.peer(),
            )
        self._debug(context, caller.user, "OK", "", seconds)

    def fail(self, context: grpc.ServicerContext, caller: Caller, start: float, error: Exception) -> Any:
        """Record a failed call and end it with a status."""
        return context.abort(*self.record_failure(context, caller, start, error))

    def record_failure(
        self, context: grpc.ServicerContext, caller: Caller, start: float, error: Exception
    ) -> tuple[grpc.StatusCode, str]:
        """Record a failed call, set its error code, and return its status."""
        seconds = time.perf_counter() - start
        code, message = status(error, self.path)
        # The id in an AuthError is not verified.
        user = error.user[:_LONGEST_ID] if isinstance(error, AuthError) else caller.user
        self._count(code.name, seconds)
        if code in _REJECTED:
            _log.warning("request rejected", method=self.path, user=user, peer=context.peer(), reason=message)
        self._debug(context, user, code.name, message, seconds)
        context.set_trailing_metadata(((ERROR_CODE_METADATA, error_code(error)),))
        return code, message

    def _debug(self, context: grpc.ServicerContext, user: str, code: str, message: str, seconds: float) -> None:
        _log.debug(
            "call",
            method=self.path,
            user=user,
            peer=context.peer(),
            code=code,
            error=message,
            milliseconds=round(seconds * 1000, 3),
        )


class _RejectedCall:
    """Handler of a call that ends before its request is read."""

    request_streaming, response_streaming = True, False
    request_deserializer = response_serializer = None

    def __init__(self, method: _Method, caller: Caller, error: Exception, pool: Immediate) -> None:
        self.experimental_thread_pool = pool
        self.stream_unary = self
        self._method = method
        self._caller = caller
        self._error = error
        self._start = time.perf_counter()

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        return self._method.fail(context, self._caller, self._start, self._error)


class _Call:
    """Handler of one call with one reply, in the form that gRPC expects."""

    __slots__ = (
        "_authenticator",
        "_caller",
        "_exchanges",
        "_method",
        "_ticket",
        "experimental_thread_pool",
        "response_serializer",
    )

    request_streaming, response_streaming = True, False
    request_deserializer = None  # the guard decodes, so that invalid bytes return INVALID_ARGUMENT, not INTERNAL

    def __init__(
        self,
        method: _Method,
        caller: Caller,
        ticket: Ticket,
        exchanges: Exchanges,
        authenticator: Authenticator | None,
    ) -> None:
        self.experimental_thread_pool = ticket.pool
        self.response_serializer = method.encode
        self._method = method
        self._caller = caller
        self._ticket = ticket
        self._exchanges = exchanges
        self._authenticator = authenticator

    @property
    def stream_unary(self) -> _Call:
        """The function that gRPC calls."""
        return self

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
        """Return the reply, or end the call with a status."""
        start = time.perf_counter()
        method, caller = self._method, self._caller
        try:
            self._begin(context)
            request = method.read(self._exchanges.receive(requests, context))
            reply = method.behaviour(request, caller)
        except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
            return method.fail(context, caller, start, error)
        method.succeed(context, caller, start, request, reply)
        self._exchanges.send(context)
        return reply

    def _begin(self, context: grpc.ServicerContext) -> None:
        """Release the ticket when the call has ended, and check the certificate, which metadata do not contain.

        Raises AuthError, and CancelledError when the call has ended already.
        """

        def end() -> None:
            self._exchanges.end(context)
            self._ticket.release()

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


class _StreamingCall(_Call):
    """Handler of one call with a stream of replies."""

    __slots__ = ()

    response_streaming = True

    @property
    def stream_stream(self) -> _StreamingCall:
        """The function that gRPC calls."""
        return self

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield the replies, and end the call with a status."""
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
        while True:
            try:
                yield self._method.read(self._exchanges.receive(requests, context))
            except NoRequestError:
                if not self._method.streams_requests:
                    raise
                return


class _StartedStream(_Call):
    """Handler of one call whose method starts a stream and returns. The stream holds neither a thread nor a ticket."""

    __slots__ = ("_present_caller",)

    response_streaming = True
    experimental_non_blocking = True

    def __init__(
        self,
        method: _Method,
        caller: Caller,
        ticket: Ticket,
        exchanges: Exchanges,
        authenticator: Authenticator | None,
        present_caller: Callable[[_Method, grpc.ServicerContext], Caller],
    ) -> None:
        super().__init__(method, caller, ticket, exchanges, authenticator)
        self._present_caller = present_caller

    @property
    def stream_stream(self) -> _StartedStream:
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
            stream = ReplyStream(context, method.encode, lambda: self._present_caller(method, context), fail)
            method.behaviour(request, caller, stream)
        except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
            fail(error)
        finally:
            self._ticket.release()


def _object_id(request: Any) -> str:
    """Return the id of the object that a request changes, empty for a request for many."""
    spec = getattr(request, "spec", None) or getattr(request, "requirements", None) or request
    return str(getattr(spec, "id", "") or getattr(spec, "partition_id", ""))


def _changed(request: Any, reply: Any) -> bool:
    """Return whether a call changed records: false for a batch that was only validated, or rejected."""
    return not getattr(request, "validate_only", False) and getattr(reply, "applied", True)
