# SPDX-License-Identifier: GPL-3.0-or-later
"""The standard services of gRPC for health checks and reflection."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from openipu.shared.vipu import wire
from openipu.vipu.api.auth import Caller
from openipu.vipu.api.convert import Message
from openipu.vipu.domain.errors import Code, RuleError, quoted

HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
REFLECTION = reflection.SERVICE_NAME

_Status = health_pb2.HealthCheckResponse


class Health:
    """Health of the services of an endpoint.

    The servicer of the library never drops a name that a client has watched, and holds one lock while it sends.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Report ``names``, and the empty name for the whole server, as not serving until ``start``."""
        self._names = frozenset(["", *names])
        self._status = _Status.NOT_SERVING
        self._stopped = False
        self._lock = threading.Lock()
        self._watchers: set[threading.Event] = set()

    def Check(self, request: Message, caller: Caller) -> Message:
        """Return the health of a service."""
        if request.service not in self._names:
            raise RuleError(
                Code.NOT_FOUND,
                f"Cannot check the health of {quoted(request.service)}: there is no such service. "
                "Omit it for the whole server.",
            )
        return _Status(status=self._status)

    def Watch(self, request: Message, caller: Caller, context: grpc.ServicerContext) -> Iterator[Message]:
        """Yield the health of a service now and after each change."""
        woken = threading.Event()
        self._watchers.add(woken)
        try:
            if not context.add_callback(woken.set):
                return
            sent = None
            while context.is_active():
                status = self._status if request.service in self._names else _Status.SERVICE_UNKNOWN
                if status != sent:
                    sent = status
                    yield _Status(status=status)
                woken.wait()
                woken.clear()
        finally:
            self._watchers.discard(woken)

    def start(self) -> None:
        """Report all services as serving. It has no effect after ``stop``."""
        with self._lock:
            if not self._stopped:
                self._report(_Status.SERVING)

    def stop(self) -> None:
        """Report all services as not serving from now on."""
        with self._lock:
            self._stopped = True
            self._report(_Status.NOT_SERVING)

    def _report(self, status: int) -> None:
        self._status = status
        for woken in self._watchers.copy():
            woken.set()

    def handler(self) -> Any:
        """Return the gRPC handler."""
        request, reply = health_pb2.HealthCheckRequest.FromString, _Status.SerializeToString
        methods = {
            "Check": grpc.unary_unary_rpc_method_handler(self.Check, request, reply),
            "Watch": grpc.unary_stream_rpc_method_handler(self.Watch, request, reply),
        }
        return grpc.method_handlers_generic_handler(HEALTH, methods)


def reflection_handler(names: Iterable[str]) -> Any:
    """Return the gRPC handler of the reflection of some services."""
    servicer = reflection.ReflectionServicer([*names, HEALTH, REFLECTION], wire.pool())

    def info(requests: Iterator[Message], caller: Caller, context: grpc.ServicerContext) -> Iterator[Message]:
        return servicer.ServerReflectionInfo(requests, context)  # type: ignore[no-any-return]

    method = grpc.stream_stream_rpc_method_handler(
        info,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(REFLECTION, {"ServerReflectionInfo": method})
