# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of a controller that does not lead: it rejects them and names the leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from openipu.vipu.api.admission import Immediate
from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR
from openipu.vipu.api.calls import RejectedCall
from openipu.vipu.api.endpoints import Endpoints
from openipu.vipu.api.guard import RequestGuard
from openipu.vipu.api.methods import Method
from openipu.vipu.storage.interface import NotLeaderError

Leader = Callable[[int], str]
"""Function of the number of an endpoint to its address on the leader, empty if unknown."""


def reject_calls(endpoints: Endpoints, leader: Leader) -> None:
    """Reject all calls with UNAVAILABLE, except for health checks, until the endpoints have other handlers."""
    for number, endpoint in enumerate(endpoints):
        endpoint.handler = _Rejection(endpoints.guard(endpoint, {}), leader, number)


class _Rejection(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Handler of all calls of an endpoint."""

    def __init__(self, health: RequestGuard, leader: Leader, number: int) -> None:
        self._health = health
        self._leader = leader
        self._number = number
        self._pool = Immediate()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of a health check, or a rejection."""
        handler = self._health.service(handler_call_details)
        if handler is not None:
            return handler
        path = handler_call_details.method
        method = Method(path, grpc.unary_unary_rpc_method_handler(None), lambda code, seconds: None)
        return RejectedCall(
            method, UNAUTHENTICATED_ADMINISTRATOR, NotLeaderError(self._leader(self._number)), self._pool
        )
