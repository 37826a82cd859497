# SPDX-License-Identifier: GPL-3.0-or-later
"""A gRPC proxy that writes down every call, and refuses writes when it is told to."""

from __future__ import annotations

from concurrent import futures
from typing import Any

import grpc

READS = ("Get", "List", "Count")


class Recorder(grpc.GenericRpcHandler):
    """Forwards all unary calls to a controller. ``calls`` are their method names since ``clear``."""

    def __init__(self, upstream: str) -> None:
        self.calls: list[str] = []
        self.read_only = False
        self._channel = grpc.insecure_channel(upstream)
        self._server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[self])
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    @property
    def writes(self) -> list[str]:
        """The calls that may change something."""
        return [name for name in self.calls if not name.startswith(READS)]

    def clear(self, read_only: bool) -> None:
        """Forget the calls so far."""
        self.calls.clear()
        self.read_only = read_only

    def service(self, details: Any) -> grpc.RpcMethodHandler:
        """The handler of any method: the same bytes to the controller and back."""
        method = details.method
        name = method.rpartition("/")[2]
        forward = self._channel.unary_unary(method)

        def call(request: bytes, context: grpc.ServicerContext) -> Any:
            self.calls.append(name)
            if self.read_only and not name.startswith(READS):
                context.abort(grpc.StatusCode.INTERNAL, f"{name} was called where nothing may be written")
            try:
                return forward(request, timeout=context.time_remaining(), metadata=context.invocation_metadata())
            except grpc.RpcError as error:
                return context.abort(error.code(), error.details())

        return grpc.unary_unary_rpc_method_handler(call)

    def stop(self) -> None:
        """End the proxy."""
        self._server.stop(0).wait()
        self._channel.close()
