# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP/2 client that sends requests in part, which the library for gRPC never does."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Mapping

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _WINDOW_UPDATE = 0, 1, 3, 4, 8
_END_HEADERS = 4
_INITIAL_WINDOW_SIZE = 4
_FRAME = 16384
_SILENCE = 0.5  # seconds without frames of the server


class Connection:
    """Connection of a client, for one call unless it sends frames of its own."""

    def __init__(self, address: str, preface: bool = True, tls: ssl.SSLContext | None = None) -> None:
        """Connect. Without ``preface``, send nothing."""
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=5)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._received = b""
        self._windows = {0: 65535, 1: 65535}
        if preface:
            self._socket.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, b""))

    def begin(self, path: str, length: int, sent: int, metadata: Mapping[str, bytes] | None = None) -> int:
        """Begin a call with a request of this length. Return how many of the first ``sent`` bytes the server allows."""
        self._socket.sendall(_frame(_HEADERS, _END_HEADERS, 1, request_headers(path, metadata)))
        data = b"\0" + struct.pack(">I", length) + bytes(sent)
        done = 0
        try:
            while done < len(data) and (size := self._allowed()):
                part = data[done : done + size]
                self._socket.sendall(_frame(_DATA, 0, 1, part))
                done += len(part)
                for stream in self._windows:
                    self._windows[stream] -= len(part)
        except OSError:  # the server has closed the connection
            pass
        return done

    def send(self, frames: bytes) -> None:
        """Send frames, however long it takes."""
        self._socket.settimeout(None)
        self._socket.sendall(frames)

    def discard(self) -> None:
        """Discard what the server has sent. It would stop reading otherwise."""
        self._socket.settimeout(0)
        with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
            while self._socket.recv(1 << 16):
                pass
            raise ConnectionResetError

    def closed(self, seconds: float) -> bool:
        """Return whether the server closes the connection in time."""
        self._socket.settimeout(seconds)
        try:
            while self._socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _allowed(self) -> int:
        """Return the size of the next frame, 0 when the server does not extend the windows."""
        while min(self._windows.values()) <= 0:
            self._socket.settimeout(_SILENCE)
            try:
                kind, stream, payload = self._next_frame()
            except TimeoutError:
                return 0
            finally:
                self._socket.settimeout(5)
            if kind == _WINDOW_UPDATE:
                self._windows[stream] += struct.unpack(">I", payload)[0]
            elif kind == _SETTINGS:
                for name, value in struct.iter_unpack(">HI", payload):
                    if name == _INITIAL_WINDOW_SIZE:
                        self._windows[1] += value - 65535
            elif kind in (_HEADERS, _RST_STREAM, 7):  # the call has ended
                return 0
        return min(*self._windows.values(), _FRAME)

    def _next_frame(self) -> tuple[int, int, bytes]:
        header = self._read(9)
        payload = self._read(int.from_bytes(header[:3], "big"))
        return header[3], int.from_bytes(header[5:], "big"), payload

    def _read(self, size: int) -> bytes:
        while len(self._received) < size:
            part = self._socket.recv(65536)
            if not part:
                raise ConnectionResetError
            self._received += part
        taken, self._received = self._received[:size], self._received[size:]
        return taken


def request_headers(path: str, metadata: Mapping[str, bytes] | None = None) -> bytes:
    """Return the headers of a call, without compression."""
    headers = {":method": b"POST", ":scheme": b"http", ":path": path.encode(), ":authority": b"x"}
    headers |= {"content-type": b"application/grpc", "te": b"trailers", **(metadata or {})}
    return b"".join(b"\0" + _text(name.encode()) + _text(value) for name, value in headers.items())


def unfinished_call(stream: int, headers: bytes) -> bytes:
    """Return the frame that begins a call."""
    return _frame(_HEADERS, _END_HEADERS, stream, headers)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _text(value: bytes) -> bytes:
    return bytes([len(value)]) + value
