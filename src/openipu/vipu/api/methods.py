# SPDX-License-Identifier: GPL-3.0-or-later
"""The methods of the services: how their calls run, and how results are logged and counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import grpc
import structlog

from openipu.shared.vipu.failover import ERROR_CODE_METADATA, LEADER_METADATA, READS
from openipu.vipu.api.admission import Group
from openipu.vipu.api.auth import AuthError, Caller
from openipu.vipu.api.status import error_code, status
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.storage.interface import NotLeaderError

_log = structlog.get_logger("openipu.vipu.api.methods")

# Bytes of an ordinary request; ``large_requests`` marks exceptions. A list of 1024 names takes half of it. A decoded
# message takes many times its encoded size: with 1 MiB, one user could occupy gigabytes and the processor for a minute.
MAX_REQUEST = 128 << 10

_REJECTED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
_LONGEST_ID = 63  # characters of an unverified user id in the log
_IDS = ("id", "partition_id", "user_id", "agent_id", "cluster_id", "run_id")  # fields of requests
_EFFECTS = ("applied", "changed")  # fields of replies: false if nothing was changed
_FINGERPRINT = 16  # digits of a fingerprint in the log
_PARTIES = 8  # groups of client addresses with a limit of log lines each

_Function = TypeVar("_Function", bound=Callable[..., Any])


def waits_for_agents(method: _Function) -> _Function:
    """Mark a method that may wait long for IPU-Machines, to run it in a separate thread pool."""
    method.waits_for_agents = True  # type: ignore[attr-defined]
    return method


def reads_agents(method: _Function) -> _Function:
    """Mark a method that reads many IPU-Machines. Each user may run few of its calls at a time, and the others wait."""
    method.reads_agents = True  # type: ignore[attr-defined]
    return waits_for_agents(method)


def large_requests(method: _Function) -> _Function:
    """Mark a method of administrators whose requests may have the maximum message size."""
    method.large_requests = True  # type: ignore[attr-defined]
    return method


def non_blocking(method: _Function) -> _Function:
    """Mark a method that starts a stream of replies and returns. It receives a ``ReplyStream`` too."""
    method.non_blocking = True  # type: ignore[attr-defined]
    return method


class Method:
    """A method, and how its calls are treated and reported."""

    unauthenticated = admin_only = False
    group: Group | None = None  # None: that of the caller
    confirm: Callable[[], None] | None = None  # raises when a result may be outdated

    def __init__(self, path: str, handler: Any, count: Callable[[str, float], None]) -> None:
        """Describe the method of a gRPC ``handler``. ``count`` records the code and the seconds of a call."""
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
        self.reads_agents = getattr(self.behaviour, "reads_agents", False)
        self.non_blocking = getattr(self.behaviour, "non_blocking", False)
        self._bounded = not getattr(self.behaviour, "large_requests", False)
        self._writes = not self.streams_replies and not self.name.startswith(READS)
        self._count = count

    def check(self, caller: Caller) -> None:
        """Raise RuleError when the caller may not use this method."""
        if self.admin_only and not caller.administrator:
            raise RuleError(
                Code.PERMISSION_DENIED,
                f"Cannot call {self.name}: only administrators may do this. Use the key of an administrator.",
            )

    def call(self, request: Any, caller: Caller) -> Any:
        """Return the reply to a request. Raises its error, or that of ``confirm``: both depend on the records."""
        confirm = self.confirm
        try:
            return self.behaviour(request, caller)
        except NotLeaderError:
            confirm = None  # nothing was changed, which it cannot know
            raise
        finally:
            if confirm is not None:
                confirm()

    def read(self, data: bytes) -> Any:
        """Return a request. Raises RuleError and DecodeError."""
        if self._bounded and len(data) > MAX_REQUEST:
            raise RuleError(
                Code.RESOURCE_EXHAUSTED,
                f"Cannot read the request of {self.path}: it has {len(data)} bytes; the limit is {MAX_REQUEST}.",
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
                **_details(reply),
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
            peer = context.peer()
            _log.warning("request rejected", method=self.path, user=user, peer=peer, reason=message, party=_party(peer))
        self._debug(context, user, code.name, message, seconds)
        leader = getattr(error, "leader", "")
        metadata = ((ERROR_CODE_METADATA, error_code(error)), *(((LEADER_METADATA, leader),) if leader else ()))
        context.set_trailing_metadata(metadata)
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


def _party(peer: str) -> str:
    """Return the group of the address of a client: an unpredictable one of few."""
    return f"clients {hash(peer.rpartition(':')[0]) % _PARTIES}"


def _object_id(request: Any) -> str:
    """Return the id of the object that a request changes, empty for a request for many."""
    spec = getattr(request, "spec", None) or getattr(request, "requirements", None) or request
    return next((str(id) for name in _IDS if (id := getattr(spec, name, ""))), "")


def _details(reply: Any) -> dict[str, str]:
    """Return further fields of the log line: the start of the fingerprint of a certificate."""
    key = getattr(getattr(reply, "description", None), "key", "") or getattr(reply, "key", "")
    return {"fingerprint": key[:_FINGERPRINT]} if key else {}


def _changed(request: Any, reply: Any) -> bool:
    """Return whether a call changed records: false for a batch that was only validated or rejected, or no effect."""
    return not getattr(request, "validate_only", False) and all(getattr(reply, name, True) for name in _EFFECTS)
