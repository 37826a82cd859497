# SPDX-License-Identifier: GPL-3.0-or-later
"""Authentication, authorisation, errors, metrics and logs of every call."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import grpc
import structlog
from google.protobuf.message import DecodeError

from openipu.shared.vipu.client import ERROR_CODE_METADATA
from openipu.vipu.api import reply_stream
from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR, Authenticator, AuthError, Caller
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.metrics.meters import Calls
from openipu.vipu.storage.event_log import CompactedError
from openipu.vipu.storage.interface import StoppedError
from openipu.vipu.storage.store import StoreError

_log = structlog.get_logger("openipu.vipu.api.guard")

# Bytes of an ordinary request; ``large_requests`` marks exceptions. A list of a thousand names takes a tenth
# of it, and a decoded message takes many times its encoded size.
_MAX_REQUEST = 1 << 20

_READS = ("Get", "List", "Count", "Watch")  # prefixes of the names of read-only methods
_REJECTED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_LONGEST_ID = 63  # characters of an unverified user id in the log

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_Method = TypeVar("_Method", bound=Callable[..., Any])


class _CancelledError(Exception):
    """Raised when the client has cancelled the call."""


def waits_for_agents(method: _Method) -> _Method:
    """Mark a method that may wait long for IPU-Machines, to run it in a separate thread pool."""
    method.waits_for_agents = True  # type: ignore[attr-defined]
    return method


def large_requests(method: _Method) -> _Method:
    """Mark a method whose requests may have the maximum message size."""
    method.large_requests = True  # type: ignore[attr-defined]
    return method


class RequestGuard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Wrapper of the service handlers.

    Handlers receive a ``Caller`` instead of the gRPC context. Their exceptions become a status with one
    message. It is a handler, not an interceptor, because a handler costs less per call.
    """

    def __init__(
        self,
        authenticator: Authenticator | None,
        handlers: Mapping[str, grpc.GenericRpcHandler],
        *,
        unauthenticated: Iterable[str],
        admin_only: Iterable[str],
        slow: ThreadPoolExecutor,
        streams: ThreadPoolExecutor,
        meters: Calls,
    ) -> None:
        """Wrap ``handlers``, a map of full service names. Without authenticator all calls are allowed.

        Services in ``unauthenticated`` need no credentials. Methods that wait for agents run in the
        pool ``slow``, and streams of replies start in the pool ``streams``. ``meters`` counts all calls.
        """
        self._authenticator = authenticator
        self._handlers = dict(handlers)
        self._unauthenticated = frozenset(unauthenticated)
        self._admin_only = frozenset(admin_only)
        self._slow = slow
        self._streams = streams
        self._meters = meters
        self._wrapped: dict[str, Any] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the guarded handler of a call, None for an unknown method."""
        method = handler_call_details.method
        wrapped = self._wrapped.get(method)
        if wrapped is None:
            service = method.rpartition("/")[0][1:]
            inner = self._handlers.get(service)
            handler = inner and inner.service(handler_call_details)
            if handler is not None:
                wrapped = self._wrapped[method] = self._wrap(service, method, handler)
        return wrapped

    def _wrap(self, service: str, method: str, handler: Any) -> Any:
        behaviour, deserializer = handler.unary_unary or handler.unary_stream, handler.request_deserializer
        authenticate = None if service in self._unauthenticated else self._authenticator
        admin_only = service in self._admin_only
        bounded = not getattr(behaviour, "large_requests", False)
        record = self._recorder(method, timed=not handler.unary_stream)

        def identify(context: grpc.ServicerContext) -> Caller:
            if not context.is_active():  # the client gave up while the call was queued
                raise _CancelledError
            caller = UNAUTHENTICATED_ADMINISTRATOR
            if authenticate is not None:
                caller = authenticate(context.invocation_metadata())
                authenticate.check_certificate(caller, context.auth_context())
            return caller

        def check(caller: Caller) -> Caller:
            if admin_only and caller.allowed is not None:
                name = method.rpartition("/")[2]
                raise RuleError(
                    Code.PERMISSION_DENIED,
                    f"Cannot call {name}: only administrators may do this. Use the key of an administrator.",
                )
            return caller

        def decode(data: bytes) -> Any:
            if bounded and len(data) > _MAX_REQUEST:
                raise RuleError(
                    Code.RESOURCE_EXHAUSTED,
                    f"Cannot read the request of {method}: it has {len(data)} bytes; the limit is {_MAX_REQUEST}.",
                )
            return deserializer(data)

        def call(data: bytes, context: grpc.ServicerContext) -> Any:
            start = time.perf_counter()
            caller, request = UNAUTHENTICATED_ADMINISTRATOR, None
            try:
                caller = identify(context)
                check(caller)
                request = decode(data)
                reply = behaviour(request, caller)
            except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
                code, message = record(context, caller.user, start, request, None, error)
                return context.abort(code, message)
            record(context, caller.user, start, request, reply, None)
            return reply

        def stream(data: bytes, context: grpc.ServicerContext, send: Callable[[None], None]) -> None:
            start = time.perf_counter()
            caller, request = UNAUTHENTICATED_ADMINISTRATOR, None

            def fail(error: Exception) -> None:
                code, message = record(context, caller.user, start, request, None, error)
                context.set_code(code)
                context.set_details(message)
                send(None)

            try:
                caller = identify(context)
                check(caller)
                request = decode(data)
                replies = reply_stream.ReplyStream(
                    context, handler.response_serializer, lambda: check(identify(context)), fail
                )
                behaviour(request, caller, replies)
            except Exception as error:  # noqa: BLE001 - clients receive a message, never a traceback
                fail(error)

        if handler.unary_stream:
            return reply_stream.handler(stream, self._streams)
        if getattr(behaviour, "waits_for_agents", False):
            call.experimental_thread_pool = self._slow  # type: ignore[attr-defined]
        # The guard decodes requests itself, so that invalid bytes return INVALID_ARGUMENT, not INTERNAL.
        return grpc.unary_unary_rpc_method_handler(
            call, request_deserializer=None, response_serializer=handler.response_serializer
        )

    def _recorder(self, method: str, *, timed: bool) -> Callable[..., tuple[grpc.StatusCode, str]]:
        """Return a function that counts and logs a call, sets its error code, and returns its status."""
        writes = not method.rpartition("/")[2].startswith(_READS)
        count = self._meters.of(method, timed=timed)

        def record(
            context: grpc.ServicerContext, user: str, start: float, request: Any, reply: Any, error: Exception | None
        ) -> tuple[grpc.StatusCode, str]:
            code, message = (grpc.StatusCode.OK, "") if error is None else _status(error, method)
            if isinstance(error, AuthError):
                user = error.user[:_LONGEST_ID]  # not verified
            seconds = time.perf_counter() - start
            count(code.name, seconds)
            if code in _REJECTED:
                _log.warning("request rejected", method=method, user=user, peer=context.peer(), reason=message)
            elif writes and error is None and _changed(request, reply):
                _log.info(
                    "request completed", method=method, object=_object_id(request), user=user, peer=context.peer()
                )
            _log.debug(
                "call",
                method=method,
                user=user,
                peer=context.peer(),
                code=code.name,
                error=message,
                milliseconds=round(seconds * 1000, 3),
            )
            if error is not None:
                context.set_trailing_metadata(((ERROR_CODE_METADATA, _error_code(error)),))
            return code, message

        return record


def _object_id(request: Any) -> str:
    """Return the id of the object that a request changes, empty for a request for many."""
    spec = getattr(request, "spec", None) or getattr(request, "requirements", None) or request
    return str(getattr(spec, "id", "") or getattr(spec, "partition_id", ""))


def _changed(request: Any, reply: Any) -> bool:
    """Return whether a call changed records: false for a batch that was only validated, or rejected."""
    return not getattr(request, "validate_only", False) and getattr(reply, "applied", True)


def _error_code(error: Exception) -> str:
    """Return the stable code of an error."""
    if isinstance(error, DecodeError):
        return f"OPU{600 + Code.INVALID_ARGUMENT}"
    return getattr(error, "error_code", "OPU618")


def _status(error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    if isinstance(error, RuleError):
        return _CODES[error.code], error.message
    if isinstance(error, AuthError):
        return grpc.StatusCode.UNAUTHENTICATED, str(error)
    if isinstance(error, DecodeError):
        return grpc.StatusCode.INVALID_ARGUMENT, f"Cannot decode the request of {method}: it is not a valid message."
    if isinstance(error, _CancelledError):
        return grpc.StatusCode.CANCELLED, "The client cancelled the call."
    if isinstance(error, CompactedError):
        return grpc.StatusCode.OUT_OF_RANGE, str(error)
    if isinstance(error, StoppedError):
        return grpc.StatusCode.UNAVAILABLE, str(error)
    if isinstance(error, StoreError):
        return grpc.StatusCode.INTERNAL, str(error)
    reference = secrets.token_hex(4)
    _log.error("internal error", method=method, reference=reference, exc_info=error)
    return grpc.StatusCode.INTERNAL, f"Internal error: see reference {reference} in the log of vipu-server."
