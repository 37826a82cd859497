# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of the connections of the metrics endpoint."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

_MAX_IDLE = 64  # connections that send a request or receive a response; a new one closes the oldest
_MAX_IDLE_SECONDS = 20.0  # for both together


class Connections:
    """Connections and the time since they opened. Slow clients cannot keep others out.

    A connection is idle until its request is complete, and again while its response is sent.
    """

    def __init__(self) -> None:
        """Start without connections."""
        self._lock = threading.Lock()
        self._idle: dict[socket.socket, float] = {}  # time of opening, the oldest first

    def add(self, connection: socket.socket) -> None:
        """Add a new connection, and close the oldest when there are too many."""
        with self._lock:
            self._idle[connection] = time.monotonic()
            while len(self._idle) > _MAX_IDLE:
                _close(next(iter(self._idle)))
                del self._idle[next(iter(self._idle))]

    def remove(self, connection: socket.socket) -> None:
        """Remove a connection that has ended."""
        with self._lock:
            self._idle.pop(connection, None)

    def close_expired(self) -> None:
        """Close the connections that are idle for too long."""
        with self._lock:
            for connection, opened in list(self._idle.items()):
                if time.monotonic() - opened < _MAX_IDLE_SECONDS:
                    break
                _close(connection)
                del self._idle[connection]

    @contextlib.contextmanager
    def busy(self, connection: socket.socket) -> Iterator[None]:
        """Keep a connection open while its response is computed."""
        self.remove(connection)
        try:
            yield
        finally:
            self.add(connection)


def _close(connection: socket.socket) -> None:
    """End a connection. Its thread, which may be blocked in it, then closes the socket."""
    with contextlib.suppress(OSError):  # it has ended meanwhile
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # also of TLS: the thread uses its state
