# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP endpoint of metrics."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
from prometheus_client.registry import Collector

from openipu.process.failures import EndpointError
from openipu.vipu.metrics.https import Https

PORT = 2112  # the vendor's IPU-Machines use it too
PATH = "/metrics"

_MAX_REQUESTS = 8  # parallel requests; the connections of others are closed
_CLIENT_TIMEOUT = 10.0  # seconds of inactivity of a client
_OPENMETRICS, _TEXT = "application/openmetrics-text", "text/plain"
_POLL = 0.5  # seconds between checks for the end of the server thread

_log: structlog.stdlib.BoundLogger = structlog.get_logger("openipu.vipu.metrics")


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """Address of an endpoint of metrics; port 0 selects a free port."""

    host: str
    port: int = PORT
    tls: Https | None = None

    @property
    def url(self) -> str:
        """URL for scrapes."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{PATH}"


class Exporter:
    """Endpoint of metrics. Each request has its own thread, so slow collectors do not block others."""

    def __init__(self, listen: MetricsAddress, collectors: Iterable[Collector]) -> None:
        """Register collectors; ``bind`` opens the socket."""
        self.listen = listen
        self._registry = CollectorRegistry(auto_describe=False)
        for collector in collectors:
            self._registry.register(collector)
        ProcessCollector(registry=self._registry)
        self._server: _Server | None = None
        self._end: Callable[[], object] | None = None

    def bind(self) -> MetricsAddress:
        """Open the socket and return its address. Raises EndpointError with a message for users."""
        host, port = self.listen.host, self.listen.port
        try:
            self._server = _Server(host, port, self.listen.tls)
        except (OSError, OverflowError, UnicodeError):
            raise EndpointError(
                f"Cannot serve metrics on {host}:{port}: the port is in use, or this machine does not have the "
                "address. Change --metrics-host or --metrics-port."
            ) from None
        self._server.set_app(_only_metrics(make_wsgi_app(self._registry)))
        self.listen = MetricsAddress(host, self._server.server_port, self.listen.tls)
        return self.listen

    def start(self) -> None:
        """Serve requests in a thread."""
        server = self._bound()
        thread = threading.Thread(target=server.serve_forever, args=(_POLL,), name="metrics", daemon=True)
        thread.start()
        self._end = server.shutdown

    def start_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Serve requests that the caller's event loop accepts: for many endpoints in a process."""
        server = self._bound()
        loop.add_reader(server.fileno(), server.handle_request)
        self._end = lambda: loop.remove_reader(server.fileno())

    def stop(self) -> None:
        """Close the endpoint; repeated calls have no effect."""
        server, self._server = self._server, None
        end, self._end = self._end, None
        if end is not None:
            end()
        if server is not None:
            server.server_close()

    def _bound(self) -> _Server:
        if self._server is None:
            raise RuntimeError("bind was not called")
        return self._server


class _Handler(WSGIRequestHandler):
    timeout = _CLIENT_TIMEOUT

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: scrapes are frequent."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    timeout = 0  # of ``handle_request``, which is called only for a waiting request

    def __init__(self, host: str, port: int, tls: Https | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._tls = tls
        self._slots = threading.BoundedSemaphore(_MAX_REQUESTS)
        super().__init__((host, port), _Handler)
        self.socket.setblocking(False)  # accept() must not block an event loop when the client has disconnected

    def server_bind(self) -> None:
        # The method of the base class resolves the name of the address, which can block.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        if self._tls is not None:  # the thread of the request does the handshake, with its first read
            connection = self._tls.context().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._slots.acquire(blocking=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except BaseException:  # the thread could not start
            self._slots.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("metrics request failed", peer=client_address, reason=repr(sys.exception()))


def _only_metrics(render: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return a WSGI application that serves ``render`` at one path, with the headers that it supports.

    The application of the library responds at any path, and raises exceptions for unusual headers.
    """

    def application(environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, text = "404 Not Found", f"Metrics are at {PATH}.\n"
        if environ["PATH_INFO"] == PATH:
            request = {
                "REQUEST_METHOD": environ["REQUEST_METHOD"],
                "PATH_INFO": PATH,
                "HTTP_ACCEPT": _accepted(environ.get("HTTP_ACCEPT", "")),
                "HTTP_ACCEPT_ENCODING": environ.get("HTTP_ACCEPT_ENCODING", ""),
            }
            try:
                return render(request, start_response)
            except Exception as error:  # noqa: BLE001 - from any collector; the next scrape may succeed
                # No traceback: ``environ`` holds the environment of this process, and some logs show local variables.
                _log.error("cannot collect metrics", reason=repr(error))
                status, text = "500 Internal Server Error", "Cannot collect metrics. Read the log.\n"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [text.encode()]

    return application


def _accepted(header: str) -> str:
    """Return the first supported format of an Accept header."""
    for each in header.split(","):
        kind = each.partition(";")[0].strip()
        if kind == _OPENMETRICS:
            return f"{kind};version=1.0.0"
        if kind == _TEXT:
            break
    return _TEXT
