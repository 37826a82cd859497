# SPDX-License-Identifier: GPL-3.0-or-later
"""Proxy to a real Neutron that fails after some writes, like a killed Neutron, or hides an extension."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    target: tuple[str, int]
    writes_left: int
    failing_path: str
    response_lost: bool
    missing_path: str
    lock: threading.Lock

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore broken connections, which the proxy causes itself."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.missing_path and self.path.endswith(self.server.missing_path):
            self.send_error(404)
            return
        with self.server.lock:
            writes_left = self.server.writes_left
            self.server.writes_left -= self.command != "GET" and self.server.failing_path in self.path
            failing = self.server.writes_left < 0
        if failing and not (writes_left == 0 and self.server.response_lost):
            self._drop_connection()
            return
        connection = http.client.HTTPConnection(*self.server.target, timeout=120)
        headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Connection")}
        connection.request(self.command, self.path, body, headers)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if failing:
            self._drop_connection()
            return
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _drop_connection(self) -> None:
        self.close_connection = True
        self.connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = _forward  # noqa: N815 - names that the base class requires

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def failing_proxy(
    url: str, writes: int = 1 << 30, failing_path: str = "", response_lost: bool = False, missing_path: str = ""
) -> Iterator[str]:
    """Start the proxy and return its URL. It fails after a number of writes to paths that contain ``failing_path``.

    With ``response_lost``, Neutron executes the next write, but its response is lost. Paths that end with
    ``missing_path`` return 404.
    """
    endpoint = urlsplit(url)
    assert endpoint.hostname
    server = _Server(("127.0.0.1", 0), _Handler)
    server.target, server.writes_left, server.lock = (endpoint.hostname, endpoint.port or 80), writes, threading.Lock()
    server.failing_path, server.response_lost, server.missing_path = failing_path, response_lost, missing_path
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{endpoint.path}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
