# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch on the network: eAPI over HTTP or HTTPS, with timers that run out and faults that act at the socket."""

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

from openipu.twin.eos.cli import Dropped
from openipu.twin.eos.eapi import handle
from openipu.twin.eos.reach import answers
from openipu.twin.eos.switch import Switch

_BACKLOG = 128
_REALM = 'Basic realm="COMMAND_API_AUTH"'
_REFUSED = "Unable to authenticate user: Bad username/password combination\n"
_COOKIE = "Session"
_LEAST = 0.02  # seconds between two looks at a commit timer


async def serve(switch: Switch, host: str, port: int, tls: ssl.SSLContext | None = None) -> Served:
    """Answer for a switch at this address; port 0 takes any that is free.

    The switch is managed from here only: its state is changed in this event loop, one request at a time.

    Args:
        switch: which.
        host: address to listen at.
        port: TCP port to listen at.
        tls: certificate of the switch; a client certificate that it verifies logs in whom its common name
            names. None is plain HTTP.

    Raises:
        OSError: when the address cannot be had.
    """
    served = Served(switch, host, port, tls)
    await served.start()
    return served


class Served:
    """A switch that answers; made by `serve`. It counts `requests`, and the `connections` they came over."""

    def __init__(self, switch: Switch, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.switch = switch
        self.host = host
        self.port = port
        self.requests = 0
        self.connections = 0
        self._tls = tls
        self._server = web.Server(self._answer, access_log=None)
        self._holder: socket.socket | None = None
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._arriving: set[asyncio.Task[None]] = set()
        self._reachable = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._cookies: dict[str, str] = {}

    async def start(self) -> None:
        """Begin to listen. Raises OSError."""
        _bound(self.host, self.port, shared=False).close()
        # This socket keeps the port while nothing listens at it, so that connections are refused and no one
        # else gets it.
        self._holder = _bound(self.host, self.port)
        self.port = self._holder.getsockname()[1]
        self.switch.on_faults(self.refresh)
        self.refresh()

    async def close(self) -> None:
        """Stop, and end all connections."""
        self.switch.no_longer(self.refresh)
        if self._timer is not None:
            self._timer.cancel()
        self._stop_listening()
        tasks = [*self._arriving, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._reachable.set()
        await self._server.shutdown(timeout=0.1)
        if self._holder is not None:
            self._holder.close()
            self._holder = None

    def refresh(self) -> None:
        """Act on the configuration and the faults as they are now."""
        self.switch.sessions.expire()
        self.switch.keep()
        self._arm()
        if answers(self.switch.running, self.switch.management_address, self._tls is not None):
            self._reachable.set()
        else:
            self._reachable.clear()
        if self.switch.faults.refusing:
            self._stop_listening()
            for connection in self._server.connections:
                _abort(connection.transport)
        elif self._listener is None and self._holder is not None:
            self._listener = _bound(self.host, self.port)
            self._listener.listen(_BACKLOG)
            self._accepting = asyncio.get_running_loop().create_task(self._accept(self._listener))

    def _arm(self) -> None:
        """Look again when the commit timer runs out."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        session = self.switch.sessions.timed()
        if session is not None:
            left = max(session.deadline - self.switch.clock(), _LEAST)
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
            task = loop.create_task(self._welcome(connection))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    async def _welcome(self, connection: socket.socket) -> None:
        # A switch that was cut off answers nothing, TLS neither, and goes on when it is back.
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

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        await self._reachable.wait()
        if self.switch.faults.slow:
            await asyncio.sleep(self.switch.faults.slow)
        if request.transport is None or request.transport.is_closing():
            return web.Response()
        self.requests += 1
        try:
            response = self._respond(request, body)
        except Dropped:
            self.refresh()
            _abort(request.transport)
            return web.Response()
        self.refresh()
        # What cut the switch off has cut off this answer too.
        await self._reachable.wait()
        return response

    def _respond(self, request: web.BaseRequest, body: bytes) -> web.Response:
        if request.path == "/login" and request.method == "POST":
            return self._login(body)
        user = self._user(request)
        if user is None:
            return web.Response(status=401, text=_REFUSED, headers={"WWW-Authenticate": _REALM})
        if request.path == "/logout":
            self._cookies.pop(_cookie(request), None)
            return web.json_response({"Logout": "success"})
        if request.path != "/command-api":
            return web.Response(status=404, text="Not found\n")
        if request.method != "POST":
            return web.Response(status=405, text="Method not allowed\n", headers={"Allow": "POST"})
        return web.json_response(handle(self.switch, user, body))

    def _login(self, body: bytes) -> web.Response:
        try:
            given: Any = json.loads(body)
            user, password = str(given["username"]), str(given["password"])
        except (ValueError, KeyError, TypeError):
            return web.Response(status=400, text="Bad request\n")
        if not self._known(user, password):
            return web.Response(status=401, text=_REFUSED)
        cookie = secrets.token_hex(16)
        self._cookies[cookie] = user
        response = web.json_response({"Login": "success"})
        response.set_cookie(_COOKIE, cookie, httponly=True, path="/")
        return response

    def _user(self, request: web.BaseRequest) -> str | None:
        """Who asks, by password, by certificate, or by an earlier login."""
        header = request.headers.get("Authorization", "")
        if header.startswith("Basic "):
            try:
                user, _, password = base64.b64decode(header[6:], validate=True).decode().partition(":")
            except (binascii.Error, UnicodeError):
                return None
            return user if self._known(user, password) else None
        if self.switch.faults.wrong_credentials:
            return None
        name = _common_name(request)
        if name in self.switch.credentials.users:
            return name
        return self._cookies.get(_cookie(request))

    def _known(self, user: str, password: str) -> bool:
        own = self.switch.credentials.users.get(user)
        if own is None or self.switch.faults.wrong_credentials:
            return False
        return hmac.compare_digest(own.encode(), password.encode())


def _bound(host: str, port: int, shared: bool = True) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.setblocking(False)
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def _abort(transport: asyncio.BaseTransport | None) -> None:
    """Break a connection with a reset, without a farewell."""
    abort: Callable[[], None] | None = getattr(transport, "abort", None)
    if abort is not None:
        abort()


def _cookie(request: web.BaseRequest) -> str:
    jar = SimpleCookie(request.headers.get("Cookie", ""))
    return jar[_COOKIE].value if _COOKIE in jar else ""


def _common_name(request: web.BaseRequest) -> str:
    """The common name of the client certificate that was verified; empty for none."""
    certificate = request.transport.get_extra_info("peercert") if request.transport else None
    for part in (certificate or {}).get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ""
