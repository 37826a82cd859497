# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of the client, and servers of the public services that respond with a function of the test."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import virmgrpc

TIMEOUT = 5.0  # seconds for a call that gets a response


class Servicer:
    """Servicer that responds to every method with one function of method name, request and context."""

    def __init__(self, respond: Callable[[str, Any, Any], Any]) -> None:
        self._respond = respond

    def __getattr__(self, method: str) -> Any:
        return lambda request, context: self._respond(method, request, context)


def version(method: str, request: Any, context: Any) -> Any:
    return virmgrpc.VersionReply(version="1.18.0")


def start(respond: Any, credentials: Any) -> tuple[int, Callable[[], None]]:
    """Start a server, without TLS if it has no credentials. Return its port, and a function that stops it."""
    pool = futures.ThreadPoolExecutor(2)
    server = grpc.server(pool, options=[("grpc.max_send_message_length", -1)])
    servicer = Servicer(respond)
    server.add_generic_rpc_handlers(
        [virmgrpc.handler(service, servicer) for service in ("VersionService", "UserService")]
    )
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()

    def stop() -> None:
        server.stop(0).wait()
        pool.shutdown()

    return int(port), stop


def aborting(code: grpc.StatusCode, message: str) -> Any:
    """Return a function that responds with an error."""
    return lambda method, request, context: context.abort(code, message)


def get_version(port: int, action: str = "", **options: Any) -> str:
    """Return the version of the controller at a port of 127.0.0.1."""
    with Client(Connection(**{"host": "127.0.0.1", "port": port, "timeout": TIMEOUT, **options})) as client:
        return str(client.call(client.version.GetVersion, virmgrpc.VersionRequest(), action).version)


def failure(port: int, action: str = "", **options: Any) -> VipuError:
    """Return the error of a version request, after a check that it is one line."""
    with pytest.raises(VipuError) as caught:
        get_version(port, action, **options)
    error = caught.value
    assert str(error) == error.message and error.message.endswith(".") and "\n" not in error.message
    return error
