# SPDX-License-Identifier: GPL-3.0-or-later
"""Endpoints of a controller that does not lead: they reject all calls and name the leader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from openipu.process.limits import connection_limit, raise_file_limit
from openipu.vipu.api.admission import Admission, Group, Immediate
from openipu.vipu.api.auth import UNAUTHENTICATED_ADMINISTRATOR
from openipu.vipu.api.calls import RejectedCall
from openipu.vipu.api.endpoints import EndpointOptions, ListenAddress, make_server, open_port
from openipu.vipu.api.exchange import Exchanges
from openipu.vipu.api.guard import RequestGuard
from openipu.vipu.api.health import HEALTH, Health
from openipu.vipu.api.methods import Method
from openipu.vipu.metrics.catalog import CONTROLLER
from openipu.vipu.metrics.meters import Calls
from openipu.vipu.storage.interface import NotLeaderError

Leader = Callable[[int], str]
"""Function of the number of an endpoint to its address on the leader, empty if unknown."""


class StandbyEndpoints:
    """gRPC servers on the addresses of the controller. Health is NOT_SERVING, all other calls are UNAVAILABLE."""

    def __init__(self, options: EndpointOptions, leader: Leader) -> None:
        """Use the addresses and credentials of the endpoints of a leader."""
        self._options = options
        self._leader = leader
        self._servers: list[grpc.Server] = []
        self._admission = Admission()

    def bind(self) -> list[ListenAddress]:
        """Bind the endpoints and return their addresses. Raises ListenError, and then releases all of them."""
        served = self._options.served()
        connections = connection_limit(raise_file_limit()) // len(served)
        bound = []
        for number, (address, services) in enumerate(served):
            server = make_server(services, connections)
            health = Health([*services, HEALTH])
            health.stop()
            server.add_generic_rpc_handlers([_Rejection(health, self._admission, self._leader, number)])
            try:
                bound.append(open_port(server, address, self._options.credentials))
            except Exception:
                self.stop()
                raise
            self._servers.append(server)
        return bound

    def start(self) -> None:
        """Start to reject calls."""
        for server in self._servers:
            server.start()

    def stop(self) -> None:
        """Release the addresses."""
        for stopping in [server.stop(0) for server in self._servers]:
            stopping.wait()
        self._servers.clear()
        self._admission.shutdown()


class _Rejection(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Handler of all calls."""

    def __init__(self, health: Health, admission: Admission, leader: Leader, number: int) -> None:
        self._guard = RequestGuard(
            None,
            {HEALTH: health.handler()},
            unauthenticated=[HEALTH],
            admin_only=[],
            groups={HEALTH: Group.HEALTH},
            admission=admission,
            exchanges=Exchanges(),
            meters=Calls(CONTROLLER, "vipu"),
        )
        self._leader = leader
        self._number = number
        self._pool = Immediate()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of a health check, or a rejection."""
        handler = self._guard.service(handler_call_details)
        if handler is not None:
            return handler
        path = handler_call_details.method
        method = Method(path, grpc.unary_unary_rpc_method_handler(None), lambda code, seconds: None)
        return RejectedCall(method, UNAUTHENTICATED_ADMINISTRATOR, rejection(self._leader(self._number)), self._pool)


def rejection(leader: str) -> NotLeaderError:
    """Return the error for a call to a controller that does not lead. ``leader``: address, empty if unknown."""
    if leader:
        return NotLeaderError(
            f"Cannot complete the call: this controller does not lead. Nothing was changed. Call {leader}.", leader
        )
    return NotLeaderError(
        "Cannot complete the call: no controller leads at present. Nothing was changed. Try again in a few seconds."
    )
