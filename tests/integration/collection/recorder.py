# SPDX-License-Identifier: GPL-3.0-or-later
"""gRPC proxy that records all calls and rejects writes of the read-only user."""

from __future__ import annotations

from concurrent import futures
from typing import Any

import grpc
from ansible_collections.openipu.pod.plugins.module_utils.vipu.client import USER_ID_METADATA
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

VALIDATION = "Apply, validate_only"  # validates a batch and writes nothing
READS = ("Get", "List", "Count", VALIDATION, "DrainAgent, validate_only")
READER = "reader"  # user name without write access; the server does not check users


def validates(name: str, request: bytes) -> bool:
    """Return whether a call validates a change and writes nothing."""
    kinds = {"Apply": admin.ApplyRequest, "DrainAgent": admin.DrainAgentRequest}
    return name in kinds and bool(kinds[name].FromString(request).validate_only)


class Recorder(grpc.GenericRpcHandler):
    """Proxy that forwards unary calls to a controller and records their callers."""

    def __init__(self, upstream: str) -> None:
        self._calls: list[tuple[str, str]] = []
        self._channel = grpc.insecure_channel(upstream)
        self._server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[self])
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def calls(self, user: str = "") -> list[str]:
        """Return the called methods of a caller, in order."""
        return [name for caller, name in self._calls if caller == user]

    def writes(self, user: str = "") -> list[str]:
        """Return the calls that may change objects."""
        return [name for name in self.calls(user) if not name.startswith(READS)]

    def service(self, details: Any) -> grpc.RpcMethodHandler:
        """Return the handler of any method, which forwards the bytes in both directions."""
        method = details.method
        name = method.rpartition("/")[2]
        forward = self._channel.unary_unary(method)

        def call(request: bytes, context: grpc.ServicerContext) -> Any:
            caller = dict(context.invocation_metadata()).get(USER_ID_METADATA, "")
            method = f"{name}, validate_only" if validates(name, request) else name
            self._calls.append((caller, method))
            if caller.startswith(READER) and not method.startswith(READS):
                context.abort(grpc.StatusCode.INTERNAL, f"{name} was called where nothing may be written")
            try:
                return forward(request, timeout=context.time_remaining(), metadata=context.invocation_metadata())
            except grpc.RpcError as error:
                return context.abort(error.code(), error.details())

        return grpc.unary_unary_rpc_method_handler(call)

    def stop(self) -> None:
        """Stop the proxy."""
        self._server.stop(0).wait()
        self._channel.close()
