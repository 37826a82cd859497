# SPDX-License-Identifier: GPL-3.0-or-later
"""Free ports for servers of tests."""

from __future__ import annotations

import socket


def free_port(host: str = "127.0.0.1", kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """Return a port of an address on which no program listens."""
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind((host, 0))
        port: int = found.getsockname()[1]
        return port
