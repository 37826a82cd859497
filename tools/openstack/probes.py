# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes that check whether a started process is ready."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable

Probe = Callable[[], bool]
TIMEOUT_SECONDS = 5.0  # of one probe


def responds_to_http(address: str, port: int, path: str = "/") -> Probe:
    """Return a probe for an HTTP response with a status below 500."""

    def probe() -> bool:
        connection = http.client.HTTPConnection(address, port, timeout=TIMEOUT_SECONDS)
        try:
            connection.request("GET", path)
            return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return probe


def sends_greeting(address: str, port: int, request: bytes = b"") -> Probe:
    """Return a probe for a server that sends data to a new connection, after it received `request`."""

    def probe() -> bool:
        try:
            with socket.create_connection((address, port), timeout=TIMEOUT_SECONDS) as connection:
                connection.sendall(request)
                return bool(connection.recv(1))
        except OSError:
            return False

    return probe


def accepts_connections(address: str, port: int) -> Probe:
    """Return a probe for a server that accepts connections."""

    def probe() -> bool:
        try:
            with socket.create_connection((address, port), timeout=TIMEOUT_SECONDS):
                return True
        except OSError:
            return False

    return probe
