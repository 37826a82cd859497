# SPDX-License-Identifier: GPL-3.0-or-later
"""eAPI server of a switch over HTTP or HTTPS, with commit timers and faults of the socket."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
import json
import secrets
import socket
import ssl
from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import Any

from aiohttp import web

from openipu.twin.devices.eos.cli import ConnectionDropped
from openipu.twin.devices.eos.eapi import handle
from openipu.twin.devices.eos.reach import is_reachable
from openipu.twin.devices.eos.switch import Switch

_BACKLOG = 128
_REALM = 'Basic realm="COMMAND_API_AUTH"'
_UNAUTHORIZED = "Unable to authenticate user: Bad username/password combination\n"
_COOKIE = "Session"
_MAX_COOKIES = 100  # logins without a logout; the oldest expires
_MIN_DELAY = 0.02  # minimum delay of a check of the commit timer, in seconds


async def serve(switch: Switch, host: str, port: int, tls: ssl.SSLContext | None = None) -> SwitchServer:
    """Start the eAPI server of a switch.

    Only this server manages the switch: its state changes in this event loop, one request at a time.

    Args:
        switch: switch to serve.
        host: address to listen on.
        port: TCP port to listen on; 0 for any free port.
        tls: TLS settings of the switch; None for plain HTTP. A verified client certificate logs in the user that
            its common name names.

    Raises:
        OSError: when the address is not available.
    """
    server = SwitchServer(switch, host, port, tls)
    try:
        await server.start()
    except BaseException:
        await server.close()
        raise
    return server


class SwitchServer:
    """eAPI server of one switch; `serve` creates it. It counts `requests` and their `connections`."""

    def __init__(self, switch: Switch, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.switch = switch
        self.host = host
        self.port = port
        self.requests = 0
        self.connections = 0
        self._tls = tls
        self._server = web.Server(self._handle, access_log=None)
        self._holder: socket.socket | None = None
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._handshakes: set[asyncio.Task[None]] = set()
        self._reachable = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._cookies: dict[str, str] = {}

    async def start(self) -> None:
        """Start listening. Raises OSError; ``close`` is necessary then too."""
        self.switch.add_fault_listener(self.refresh)
        _bind(self.host, self.port, shared=False).close()
        # This socket reserves the port while the switch does not listen, so that connections are rejected.
        self._holder = _bind(self.host, self.port)
        self.port = self._holder.getsockname()[1]
        self.refresh()

    async def close(self) -> None:
        """Stop listening and close all connections."""
        self.switch.remove_fault_listener(self.refresh)
        if self._timer is not None:
            self._timer.cancel()
        self._stop_listening()
        tasks = [*self._handshakes, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._reachable.set()
        await self._server.shutdown(timeout=0.1)
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def refresh(self) -> None:
        """Apply the current configuration and faults to the socket."""
        self.switch.sessions.expire()
        self.switch.write_state()
        self._schedule_rollback()
        if is_reachable(self.switch.running, self.switch.management_address, self._tls is not None):
            self._reachable.set()
        else:
            self._reachable.clear()
        if self.switch.faults.rejecting:
            self._stop_listening()
            for connection in self._server.connections:
                _abort(connection.transport)
        elif self._listener is None and self._holder is not None:
            self._listener = _bind(self.host, self.port)
            self._listener.listen(_BACKLOG)
            self._accepting = asyncio.get_running_loop().create_task(self._accept(self._listener))

    def _schedule_rollback(self) -> None:
        """Refresh when the commit timer expires."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        session = self.switch.sessions.unconfirmed()
        if session is not None:
            left = max(session.deadline - self.switch.clock(), _MIN_DELAY)
            self._timer = asyncio.get_running_loop().call_later(left, self.refresh)

    def _stop_listening(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            task = loop.create_task(self._handshake(connection))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _handshake(self, connection: socket.socket) -> None:
        # An unreachable switch does not even start TLS; it continues when it is reachable again.
        try:
            await self._reachable.wait()
            with contextlib.suppress(OSError, ssl.SSLError):
                await asyncio.get_running_loop().connect_accepted_socket(self._server, connection, ssl=self._tls)
                self.connections += 1
                return
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        await self._reachable.wait()
        if self.switch.faults.slow:
            await asyncio.sleep(self.switch.faults.slow)
        if request.transport is None or request.transport.is_closing():
            return web.Response()
        self.requests += 1
        try:
            response = self._respond(request, body)
        except ConnectionDropped:
            self.refresh()
            _abort(request.transport)
            return web.Response()
        self.refresh()
        # A request that makes the switch unreachable also loses its own response.
        await self._reachable.wait()
        return response

    def _respond(self, request: web.BaseRequest, body: bytes) -> web.Response:
        if request.path == "/login" and request.method == "POST":
            return self._login(body)
        user = self._user(request)
        if user is None:
            return web.Response(status=401, text=_UNAUTHORIZED, headers={"WWW-Authenticate": _REALM})
        if request.path == "/logout":
            self._cookies.pop(_cookie(request), None)
            return web.json_response({"Logout": "success"})
        if request.path != "/command-api":
            return web.Response(status=404, text="Not found\n")
        if request.method == "HEAD":
            return web.Response()
        if request.method != "POST":
            return web.Response(status=405, text="Method not allowed\n", headers={"Allow": "POST"})
        return web.json_response(handle(self.switch, user, body))

    def _login(self, body: bytes) -> web.Response:
        try:
            given: Any = json.loads(body)
            user, password = str(given["username"]), str(given["password"])
        except (ValueError, KeyError, TypeError):
            return web.Response(status=400, text="Bad request\n")
        if not self._is_valid(user, password):
            return web.Response(status=401, text=_UNAUTHORIZED)
        cookie = secrets.token_hex(16)
        while len(self._cookies) >= _MAX_COOKIES:
            del self._cookies[next(iter(self._cookies))]
        self._cookies[cookie] = user
        response = web.json_response({"Login": "success"})
        response.set_cookie(_COOKIE, cookie, httponly=True, path="/")
        return response

    def _user(self, request: web.BaseRequest) -> str | None:
        """Return the user name by password, certificate or cookie; None if unauthenticated."""
        header = request.headers.get("Authorization", "")
        if header.startswith("Basic "):
            try:
                user, _, password = base64.b64decode(header[6:], validate=True).decode().partition(":")
            except (binascii.Error, UnicodeError):
                return None
            return user if self._is_valid(user, password) else None
        if self.switch.faults.wrong_credentials:
            return None
        name = _common_name(request)
        if name in self.switch.credentials.users:
            return name
        return self._cookies.get(_cookie(request))

    def _is_valid(self, user: str, password: str) -> bool:
        expected = self.switch.credentials.users.get(user)
        if expected is None or self.switch.faults.wrong_credentials:
            return False
        return hmac.compare_digest(expected.encode(), password.encode())


def _bind(host: str, port: int, shared: bool = True) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.setblocking(False)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


def _abort(transport: asyncio.BaseTransport | None) -> None:
    """Reset a connection."""
    abort: Callable[[], None] | None = getattr(transport, "abort", None)
    if abort is not None:
        abort()


def _cookie(request: web.BaseRequest) -> str:
    jar = SimpleCookie(request.headers.get("Cookie", ""))
    return jar[_COOKIE].value if _COOKIE in jar else ""


def _common_name(request: web.BaseRequest) -> str:
    """Return the common name of the verified client certificate; empty for none."""
    certificate = request.transport.get_extra_info("peercert") if request.transport else None
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ""
