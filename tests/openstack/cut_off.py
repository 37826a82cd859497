# SPDX-License-Identifier: GPL-3.0-or-later
"""A way to the real Neutron that breaks after some writes, as when Neutron is killed, or lacks an extension."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    to: tuple[str, int]
    writes_left: int
    at: str
    answer_lost: bool
    lacks: str
    lock: threading.Lock

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that breaks is what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.lacks and self.path.endswith(self.server.lacks):
            self.send_error(404)
            return
        with self.server.lock:
            before = self.server.writes_left
            self.server.writes_left -= self.command != "GET" and self.server.at in self.path
            broken = self.server.writes_left < 0
        if broken and not (before == 0 and self.server.answer_lost):
            self._hang_up()
            return
        connection = http.client.HTTPConnection(*self.server.to, timeout=120)
        headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Connection")}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if broken:
            self._hang_up()
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = _forward  # noqa: N815 - the base class asks for these names

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def cut_off(url: str, writes: int = 1 << 30, at: str = "", answer_lost: bool = False, lacks: str = "") -> Iterator[str]:
    """Where a Neutron answers that is gone after so many writes, to addresses that have ``at`` in them.

    With ``answer_lost`` it still does what the next one asks, and nobody hears of it. What it lacks is an address.
    """
    parts = urlsplit(url)
    assert parts.hostname
    server = _Server(("127.0.0.1", 0), _Handler)
    server.to, server.writes_left, server.lock = (parts.hostname, parts.port or 80), writes, threading.Lock()
    server.at, server.answer_lost, server.lacks = at, answer_lost, lacks
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{parts.path}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
