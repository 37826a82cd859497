# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether something that was started answers."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable

Probe = Callable[[], bool]
SECONDS = 5.0  # that one question may take


def http_answers(address: str, port: int, path: str = "/") -> Probe:
    """It answers over HTTP, and not that it is broken."""

    def probe() -> bool:
        connection = http.client.HTTPConnection(address, port, timeout=SECONDS)
        try:
            connection.request("GET", path)
            return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return probe


def greets(address: str, port: int, hello: bytes = b"") -> Probe:
    """It says something to who connects (and says `hello`)."""

    def probe() -> bool:
        try:
            with socket.create_connection((address, port), timeout=SECONDS) as connection:
                connection.sendall(hello)
                return bool(connection.recv(1))
        except OSError:
            return False

    return probe


def accepts(address: str, port: int) -> Probe:
    """It accepts connections."""

    def probe() -> bool:
        try:
            with socket.create_connection((address, port), timeout=SECONDS):
                return True
        except OSError:
            return False

    return probe
