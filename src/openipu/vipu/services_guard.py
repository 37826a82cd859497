# SPDX-License-Identifier: GPL-3.0-or-later
"""The one gate that every call of our services goes through: who calls, may they, and what went wrong."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import grpc
import structlog
from google.protobuf.message import DecodeError

from openipu.vipu.auth import ANYBODY, Authenticator, AuthError
from openipu.vipu.checks import Code, RuleError
from openipu.vipu.metrics.meters import Calls
from openipu.vipu.ports import StoppedError
from openipu.vipu.store import StoreError

_log = structlog.get_logger("openipu.vipu.services")

# Bytes of an ordinary request; those that are larger by nature say so. A list of a thousand names takes a
# tenth of it, and a message takes many times its size when it is read.
_MAX_REQUEST = 1 << 20

_READS = ("Get", "List", "Count")  # how methods begin that change nothing
_REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_LONGEST_ID = 63  # of what somebody sent, in the log

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_Method = TypeVar("_Method", bound=Callable[..., Any])


class _Gone(Exception):
    """Nobody waits for the answer any more."""


def waits_for_agents(method: _Method) -> _Method:
    """Mark a method that may wait long for IPU-Machines, so that it does not keep the others waiting."""
    method.waits_for_agents = True  # type: ignore[attr-defined]
    return method


def large_requests(method: _Method) -> _Method:
    """Mark a method whose requests may be as large as a message can be."""
    method.large_requests = True  # type: ignore[attr-defined]
    return method


class Guard(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Stands before the handlers of our services.

    They get a ``Caller`` in the place of the gRPC context. Whatever they raise becomes a status with
    one sentence. It is a handler and no interceptor: the same with less work for every call.
    """

    def __init__(
        self,
        authenticator: Authenticator | None,
        handlers: Mapping[str, grpc.GenericRpcHandler],
        *,
        without_user: Iterable[str],
        admin_only: Iterable[str],
        slow: ThreadPoolExecutor,
        meters: Calls,
    ) -> None:
        """Guard services, by full name; without authenticator everybody may do everything.

        Methods that wait for agents run in the pool ``slow``. All calls count in ``meters``.
        """
        self._authenticator = authenticator
        self._handlers = dict(handlers)
        self._without_user = frozenset(without_user)
        self._admin_only = frozenset(admin_only)
        self._slow = slow
        self._meters = meters
        self._wrapped: dict[str, Any] = {}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """The guarded handler of a call, None for what is not ours."""
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
        behaviour, deserializer = handler.unary_unary, handler.request_deserializer
        authenticate = None if service in self._without_user else self._authenticator
        admin_only = service in self._admin_only
        bounded = not getattr(behaviour, "large_requests", False)
        writes = not method.rpartition("/")[2].startswith(_READS)
        answered = self._meters.of(method)

        def call(data: bytes, context: grpc.ServicerContext) -> Any:
            start = time.perf_counter()
            caller, reply = ANYBODY, None
            code, sentence, user, request = grpc.StatusCode.OK, "", "", None
            try:
                if not context.is_active():  # it waited for its turn longer than its client did
                    raise _Gone
                if authenticate is not None:
                    caller = authenticate(context.invocation_metadata())
                user = caller.user
                if admin_only and caller.allowed is not None:
                    raise RuleError(Code.PERMISSION_DENIED, "Only an administrator may do that.")
                if bounded and len(data) > _MAX_REQUEST:
                    raise RuleError(
                        Code.RESOURCE_EXHAUSTED,
                        f"A request of {method} has at most {_MAX_REQUEST} bytes, not {len(data)}.",
                    )
                request = deserializer(data)
                reply = behaviour(request, caller)
            except Exception as error:  # noqa: BLE001 - nothing but a sentence may reach the client
                code, sentence = _status(error, method)
                if isinstance(error, AuthError):
                    user = error.user[:_LONGEST_ID]  # that it claims to be
            seconds = time.perf_counter() - start
            answered(code.name, seconds)
            if code in _REFUSED:
                _log.warning("refused", method=method, user=user, peer=context.peer(), reason=sentence)
            elif writes and code is grpc.StatusCode.OK and _changed(request, reply):
                _log.info("done", method=method, object=_named(request), user=user, peer=context.peer())
            _log.debug(
                "call",
                method=method,
                user=user,
                peer=context.peer(),
                code=code.name,
                error=sentence,
                milliseconds=round(seconds * 1000, 3),
            )
            return reply if code is grpc.StatusCode.OK else context.abort(code, sentence)

        if getattr(behaviour, "waits_for_agents", False):
            call.experimental_thread_pool = self._slow  # type: ignore[attr-defined]
        # Requests are read here, so that garbage is the caller's mistake and not an internal error.
        return grpc.unary_unary_rpc_method_handler(
            call, request_deserializer=None, response_serializer=handler.response_serializer
        )


def _named(request: Any) -> str:
    """The id of the object that a write is about; empty for one about many."""
    spec = getattr(request, "spec", None) or getattr(request, "requirements", None) or request
    return str(getattr(spec, "id", "") or getattr(spec, "partition_id", ""))


def _changed(request: Any, reply: Any) -> bool:
    """False for a batch that was only looked at, or refused in its reply."""
    return not getattr(request, "validate_only", False) and getattr(reply, "applied", True)


def _status(error: Exception, method: str) -> tuple[grpc.StatusCode, str]:
    if isinstance(error, RuleError):
        return _CODES[error.code], error.sentence
    if isinstance(error, AuthError):
        return grpc.StatusCode.UNAUTHENTICATED, str(error)
    if isinstance(error, DecodeError):
        return grpc.StatusCode.INVALID_ARGUMENT, f"What was sent is no request of {method}."
    if isinstance(error, _Gone):
        return grpc.StatusCode.CANCELLED, "The caller has gone."
    if isinstance(error, StoppedError):
        return grpc.StatusCode.UNAVAILABLE, str(error)
    if isinstance(error, StoreError):
        return grpc.StatusCode.INTERNAL, str(error)
    reference = secrets.token_hex(4)
    _log.error("internal error", method=method, reference=reference, exc_info=error)
    return grpc.StatusCode.INTERNAL, f"Internal error; see reference {reference} in the log of vipu-server."
