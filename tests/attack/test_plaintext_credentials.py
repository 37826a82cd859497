# SPDX-License-Identifier: GPL-3.0-or-later
"""Access keys on networks without encryption."""

from __future__ import annotations

import contextlib
from concurrent import futures
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import Client, Connection, VipuError
from openipu.shared.vipu.contract import virmgrpc


@pytest.mark.defence("openipu.shared.vipu.client.is_loopback", bool)
def test_no_access_key_in_plaintext() -> None:
    """A controller without TLS does not receive the access key, unless the user allows it."""
    received: list[str] = []

    def version(request: Any, context: Any) -> Any:
        received.extend(str(value) for key, value in context.invocation_metadata() if "access-key" in key)
        return virmgrpc.VersionReply(version="1.18.0")

    with futures.ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers([virmgrpc.handler("VersionService", SimpleNamespace(GetVersion=version))])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            # Linux connects 0.0.0.0 to loopback, but it is not a loopback address.
            for more in ({}, {"insecure_network": True}):
                connection = Connection("0.0.0.0", port, "alice", "k3y", timeout=10, **more)  # type: ignore[arg-type]
                with Client(connection) as client, contextlib.suppress(VipuError):
                    client.call(client.version.GetVersion, virmgrpc.VersionRequest())
        finally:
            server.stop(0).wait()
    assert received == ["k3y"]
