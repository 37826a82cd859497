# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP end-point from which metrics are fetched."""

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

from openipu.vipu.metrics.https import Https

PORT = 2112  # of IPU-Machines from the vendor too
PATH = "/metrics"

_AT_ONCE = 8  # requests; more are hung up on
_SILENCE = 10.0  # seconds that a client may keep a request waiting
_OPENMETRICS, _TEXT = "application/openmetrics-text", "text/plain"
_POLL = 0.5  # seconds until a thread that waits for requests sees that it is to end

_log: structlog.stdlib.BoundLogger = structlog.get_logger("openipu.vipu.metrics")


@dataclass(frozen=True, slots=True)
class Listen:
    """Where metrics are told; port 0 takes a free one."""

    host: str
    port: int = PORT
    tls: Https | None = None

    @property
    def url(self) -> str:
        """As a monitoring system is told."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{PATH}"


class Exporter:
    """One end-point. Each request is answered in a thread of its own, so collectors may take their time."""

    def __init__(self, listen: Listen, collectors: Iterable[Collector]) -> None:
        """Nothing happens before ``bind``."""
        self.listen = listen
        self._registry = CollectorRegistry(auto_describe=False)
        for collector in collectors:
            self._registry.register(collector)
        ProcessCollector(registry=self._registry)
        self._server: _Server | None = None
        self._end: Callable[[], object] | None = None

    def bind(self) -> Listen:
        """Take the address. Raises OSError with a sentence."""
        host, port = self.listen.host, self.listen.port
        try:
            self._server = _Server(host, port, self.listen.tls)
        except (OSError, OverflowError, UnicodeError):
            raise OSError(
                f"Cannot tell metrics on {host}:{port}: another program has that port, or this machine has no such "
                "address; give another with --metrics-host and --metrics-port."
            ) from None
        self._server.set_app(_only_metrics(make_wsgi_app(self._registry)))
        self.listen = Listen(host, self._server.server_port, self.listen.tls)
        return self.listen

    def start(self) -> None:
        """Answer, in a thread."""
        server = self._bound()
        thread = threading.Thread(target=server.serve_forever, args=(_POLL,), name="metrics", daemon=True)
        thread.start()
        self._end = server.shutdown

    def start_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer, and let this loop, which is the caller's, wait for requests: for many end-points in a process."""
        server = self._bound()
        loop.add_reader(server.fileno(), server.handle_request)
        self._end = lambda: loop.remove_reader(server.fileno())

    def stop(self) -> None:
        """Close the end-point; nothing happens to one that is closed."""
        server, self._server = self._server, None
        end, self._end = self._end, None
        if end is not None:
            end()
        if server is not None:
            server.server_close()

    def _bound(self) -> _Server:
        if self._server is None:
            raise RuntimeError("bind comes before start")
        return self._server


class _Handler(WSGIRequestHandler):
    timeout = _SILENCE

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a scrape is no event."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    timeout = 0  # of ``handle_request``, which is called when there is one

    def __init__(self, host: str, port: int, tls: Https | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._tls = tls
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        super().__init__((host, port), _Handler)
        self.socket.setblocking(False)  # a client that has gone again must not keep an event loop waiting

    def server_bind(self) -> None:
        # Not as its base does, which asks the name service what this address is called.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        if self._tls is not None:  # the handshake is the thread's, with its first read
            connection = self._tls.context().wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._room.acquire(blocking=False)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread is to be had for it
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.debug("no answer to a request for metrics", peer=client_address, reason=repr(sys.exception()))


def _only_metrics(tell: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The library's application, which answers to any path and stumbles over odd headers, for what it understands."""

    def application(environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, sentence = "404 Not Found", f"Metrics are at {PATH}.\n"
        if environ["PATH_INFO"] == PATH:
            request = {
                "REQUEST_METHOD": environ["REQUEST_METHOD"],
                "PATH_INFO": PATH,
                "HTTP_ACCEPT": _accepted(environ.get("HTTP_ACCEPT", "")),
                "HTTP_ACCEPT_ENCODING": environ.get("HTTP_ACCEPT_ENCODING", ""),
            }
            try:
                return tell(request, start_response)
            except Exception as error:  # noqa: BLE001 - whatever a collector met; the next scrape may be better
                # No traceback: ``environ`` holds the environment of this process, and some logs show local variables.
                _log.error("metrics not collected", reason=repr(error))
                status, sentence = "500 Internal Server Error", "See the log.\n"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [sentence.encode()]

    return application


def _accepted(header: str) -> str:
    """The first format in an Accept header that there is."""
    for each in header.split(","):
        kind = each.partition(";")[0].strip()
        if kind == _OPENMETRICS:
            return f"{kind};version=1.0.0"
        if kind == _TEXT:
            break
    return _TEXT
