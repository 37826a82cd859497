# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP agent of a PDU on a UDP port: pysnmp's engine, its users and its faults."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Mapping
from typing import Any

import structlog
from pysnmp.carrier.asyncio.dgram import udp
from pysnmp.carrier.asyncio.dispatch import AsyncioDispatcher
from pysnmp.entity import config
from pysnmp.entity.engine import SnmpEngine
from pysnmp.proto.rfc1902 import OctetString

from openipu.twin.devices.pdu.pdu import Pdu
from openipu.twin.devices.pdu.responder import LONGEST_MESSAGE, Responder
from openipu.twin.devices.pdu.traps import Traps

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin.pdu")

PORT = 161
TRAP_PORT = 162
_SAMPLE_EVERY = 1.0  # s
_SAVE_EVERY = 60  # samples
_LONGEST_ID = 27  # characters of an engine id in text format (RFC 3411, SnmpEngineID)

_AUTH = {
    "md5": config.USM_AUTH_HMAC96_MD5,
    "sha": config.USM_AUTH_HMAC96_SHA,
    "sha256": config.USM_AUTH_HMAC192_SHA256,
    "sha384": config.USM_AUTH_HMAC256_SHA384,
    "sha512": config.USM_AUTH_HMAC384_SHA512,
}
# AES192 and AES256 keys are localized as in Net-SNMP.
_PRIV = {
    "des": config.USM_PRIV_CBC56_DES,
    "aes": config.USM_PRIV_CFB128_AES,
    "aes192": config.USM_PRIV_CFB192_AES_BLUMENTHAL,
    "aes256": config.USM_PRIV_CFB256_AES_BLUMENTHAL,
}


async def serve(pdu: Pdu, host: str, port: int = PORT, *, trap_port: int = TRAP_PORT) -> Server:
    """Start the agent of a PDU at an IPv4 address; port 0 selects a free one. Raises OSError.

    Traps are sent from the same address, to ``trap_port`` of the configured receivers.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.bind((host, port))
        sock.setblocking(False)
        server = Server(pdu, sock, trap_port)
        await server.start()
    except BaseException:
        sock.close()
        raise
    return server


class Server:
    """A running agent, until ``close``. ``serve`` creates it."""

    def __init__(self, pdu: Pdu, sock: socket.socket, trap_port: int) -> None:
        self.pdu = pdu
        self.host, self.port = sock.getsockname()
        self._socket = sock
        self._spoiled = False  # whether the keys are random
        self._transport = _Transport(self)
        self._engine = _engine(pdu)
        self._writers = {(3, user.name) for user in pdu.credentials.users if user.write}
        self._responder = Responder(self._engine, pdu, lambda model, name: (model, name) in self._writers)
        self._traps = Traps(pdu, self.host, trap_port, self._send)
        self._sampling: asyncio.Task[None] | None = None

    @property
    def requests(self) -> Mapping[str, int]:
        """Number of accepted requests by kind: get, get_next, get_bulk, set."""
        return self._responder.requests

    async def start(self) -> None:
        """Start to receive requests and to send traps."""
        loop = asyncio.get_running_loop()
        self._configure_users()
        dispatcher = AsyncioDispatcher(loop=loop, timeout=_SAMPLE_EVERY)
        self._engine.register_transport_dispatcher(dispatcher)
        dispatcher.register_transport(udp.DOMAIN_NAME, self._transport)
        await loop.create_datagram_endpoint(lambda: self._transport, sock=self._socket)
        self.pdu.listeners.append(self._traps.send)
        self._sampling = asyncio.create_task(self._sample())

    async def close(self) -> None:
        """Stop receiving requests, and save the counters of the PDU."""
        if self._sampling is None:
            return
        sampling, self._sampling = self._sampling, None
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampling
        self.pdu.listeners.remove(self._traps.send)
        self._engine.close_dispatcher()
        self._socket.close()
        self.pdu.close()

    def prepare(self) -> None:
        """Apply the credential fault of the PDU, before a request is processed."""
        spoiled = self.pdu.faults.wrong_credentials
        if spoiled != self._spoiled:
            self._spoiled = spoiled
            self._configure_users()

    def _configure_users(self) -> None:
        def configured(secret: str) -> str:
            return secrets.token_hex(16) if self._spoiled else secret

        for user in self.pdu.credentials.users:
            config.add_v3_user(
                self._engine,
                user.name,
                _AUTH[user.auth],
                configured(user.auth_key),
                _PRIV[user.priv],
                configured(user.priv_key),
            )
        for number, community in enumerate(self.pdu.credentials.communities):
            name = f"community-{number}"
            config.add_v1_system(self._engine, name, configured(community.name), securityName=name)
            if community.write:
                self._writers |= {(1, name), (2, name)}

    async def _sample(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(_SAMPLE_EVERY)
            self.pdu.sample()
            count += 1
            if count % _SAVE_EVERY == 0:
                self.pdu.save()

    def _send(self, datagram: bytes, to: tuple[str, int]) -> None:
        if self._transport.transport is not None:
            self.pdu.traffic.sent(len(datagram))
            self._transport.transport.sendto(datagram, to)


class _Transport(udp.UdpAsyncioTransport):  # type: ignore[misc]  # pysnmp has no types
    """UDP transport of the engine. It counts datagrams, and drops or delays them for a fault."""

    def __init__(self, server: Server) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._server = server

    def datagram_received(self, datagram: bytes, address: Any) -> None:
        """Pass a datagram to the engine; asyncio calls this."""
        faults = self._server.pdu.faults
        self._server.pdu.traffic.received(len(datagram))
        if faults.rejecting:
            return
        if faults.slow > 0:
            self.loop.call_later(faults.slow, self._process, datagram, address)
        else:
            self._process(datagram, address)

    def send_message(self, message: bytes, address: Any) -> None:
        """Send a datagram; the engine calls this."""
        self._server.pdu.traffic.sent(len(message))
        super().send_message(message, address)

    def _process(self, datagram: bytes, address: Any) -> None:
        if self._callback_function is not None:  # None after close
            self._server.prepare()
            try:
                self._callback_function(self, address, datagram)
            except Exception as error:  # noqa: BLE001  pysnmp raises any exception for an invalid message
                _log.debug("invalid datagram", pdu=self._server.pdu.name, sender=address[0], error=repr(error))


def _engine(pdu: Pdu) -> Any:
    """Return an engine with the id and the boot count of this PDU.

    The id is set after the engine is created: otherwise pysnmp writes its own files to the temporary folder. A PDU
    without persistent state gets a new id each time; with a reused id, managers would reject its messages as old.
    """
    engine = SnmpEngine(maxMessageSize=LONGEST_MESSAGE)
    builder = engine.get_mib_builder()
    name = pdu.serial if pdu.persistent else f"{pdu.serial}-{secrets.token_hex(4)}"
    (identity,) = builder.import_symbols("__SNMP-FRAMEWORK-MIB", "snmpEngineID")
    identity.syntax = identity.syntax.clone(OctetString(b"\x80\x00\x01\x3e\x04" + name.encode()[:_LONGEST_ID]))
    engine.snmpEngineID = identity.syntax
    (boots,) = builder.import_symbols("__SNMP-FRAMEWORK-MIB", "snmpEngineBoots")
    boots.syntax = boots.syntax.clone(pdu.count_boot())
    return engine
