# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP endpoint of metrics."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
from prometheus_client.registry import Collector

from openipu.process.failures import EndpointError
from openipu.vipu.metrics.access import is_known_host
from openipu.vipu.metrics.address import PATH, MetricsAddress
from openipu.vipu.metrics.connections import Connections
from openipu.vipu.metrics.https import Https

_MAX_SCRAPES = 8  # in parallel; others get an error
_CLIENT_TIMEOUT = 10.0  # seconds of inactivity of a client
_BUSY = "openipu.busy"  # key of an environment of WSGI
_OPENMETRICS, _TEXT = "application/openmetrics-text", "text/plain"
_POLL = 0.5  # seconds between checks for the end of the server thread

_log: structlog.stdlib.BoundLogger = structlog.get_logger("openipu.vipu.metrics")


class Exporter:
    """Endpoint of metrics. Each request has its own thread, so slow collectors do not block others."""

    def __init__(self, listen: MetricsAddress, collectors: Iterable[Collector]) -> None:
        """Register collectors; ``bind`` opens the socket."""
        self.listen = listen
        registry = CollectorRegistry(auto_describe=False)
        for collector in collectors:
            registry.register(collector)
        ProcessCollector(registry=registry)
        self._registry = registry
        self._render = make_wsgi_app(registry)
        self._slots = threading.BoundedSemaphore(_MAX_SCRAPES)
        self._server: _Server | None = None
        self._end: Callable[[], object] | None = None

    def add(self, collectors: Iterable[Collector]) -> None:
        """Register further collectors. The endpoint may serve already."""
        for collector in collectors:
            self._registry.register(collector)

    def bind(self) -> MetricsAddress:
        """Open the socket and return its address. Raises EndpointError with a message for users."""
        host, port = self.listen.host, self.listen.port
        try:
            self._server = _Server(host, port, self.listen.tls, self._respond)
        except (OSError, OverflowError, UnicodeError):
            raise EndpointError(
                f"Cannot serve metrics on {host}:{port}: the port is in use, or this machine does not have the "
                "address. Change --metrics-host or --metrics-port."
            ) from None
        self.listen = replace(self.listen, port=self._server.server_port)
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

    def _respond(self, environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve the metrics at one path, as a WSGI application, to clients with access."""
        if not is_known_host(environ.get("HTTP_HOST", "localhost"), (self.listen.host, *self.listen.names)):
            return _error(start_response, "421 Misdirected Request", "Use the address, or add --metrics-name.")
        if self.listen.token is not None and not self.listen.token.accepts(environ.get("HTTP_AUTHORIZATION", "")):
            return _error(start_response, "401 Unauthorized", "A token is required.", ("WWW-Authenticate", "Bearer"))
        if environ["PATH_INFO"] != PATH:
            return _error(start_response, "404 Not Found", f"Metrics are at {PATH}.")
        if not self._slots.acquire(blocking=False):
            return _error(start_response, "503 Service Unavailable", "Too many scrapes at once.")
        # The application of the library raises exceptions for unusual headers.
        request = {
            "REQUEST_METHOD": environ["REQUEST_METHOD"],
            "PATH_INFO": PATH,
            "HTTP_ACCEPT": _accepted(environ.get("HTTP_ACCEPT", "")),
            "HTTP_ACCEPT_ENCODING": environ.get("HTTP_ACCEPT_ENCODING", ""),
        }
        try:
            with environ[_BUSY]:
                response: Iterable[bytes] = self._render(request, start_response)
                return response
        except Exception as error:  # noqa: BLE001 - from any collector; the next scrape may succeed
            # No traceback: ``environ`` holds the environment of this process, and some logs show local variables.
            _log.error("cannot collect metrics", reason=repr(error))
            return _error(start_response, "500 Internal Server Error", "Cannot collect metrics. Read the log.")
        finally:
            self._slots.release()


class _Handler(WSGIRequestHandler):
    timeout = _CLIENT_TIMEOUT
    server: _Server

    def get_environ(self) -> dict[str, Any]:
        """Add the context in which the connection stays open."""
        return {**super().get_environ(), _BUSY: self.server.connections.busy(self.connection)}

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: scrapes are frequent."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128  # with the default, 5, a few clients delay the connections of others by seconds
    timeout = 0  # of ``handle_request``, which is called only for a waiting request

    def __init__(self, host: str, port: int, tls: Https | None, application: Callable[..., Iterable[bytes]]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._tls = tls
        self.connections = Connections()
        super().__init__((host, port), _Handler)
        self.set_app(application)
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

    def service_actions(self) -> None:
        self.connections.close_expired()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.close_expired()  # an event loop calls no service_actions
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("metrics request failed", peer=client_address, reason=repr(sys.exception()))


def _error(start_response: Callable[..., Any], status: str, text: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [f"{text}\n".encode()]


def _accepted(header: str) -> str:
    """Return the first supported format of an Accept header."""
    for each in header.split(","):
        kind = each.partition(";")[0].strip()
        if kind == _OPENMETRICS:
            return f"{kind};version=1.0.0"
        if kind == _TEXT:
            break
    return _TEXT
