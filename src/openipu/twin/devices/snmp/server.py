# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP agent of a device on a UDP port: pysnmp's engine, its users and its faults."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from pysnmp.carrier.asyncio.dgram import udp
from pysnmp.carrier.asyncio.dispatch import AsyncioDispatcher
from pysnmp.entity import config
from pysnmp.entity.engine import SnmpEngine
from pysnmp.proto.rfc1902 import OctetString

from openipu.twin.devices.snmp.device import ManagedDevice
from openipu.twin.devices.snmp.responder import LONGEST_MESSAGE, Responder
from openipu.twin.devices.snmp.users import Credentials, User

_log: structlog.stdlib.BoundLogger = structlog.get_logger("twin.snmp")

PORT = 161
_TIMER = 1.0  # s, period of the timers of pysnmp

_AUTH = {
    "md5": config.USM_AUTH_HMAC96_MD5,
    "sha": config.USM_AUTH_HMAC96_SHA,
    "sha224": config.USM_AUTH_HMAC128_SHA224,
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


def bind(host: str, port: int) -> socket.socket:
    """Return a UDP socket at an IPv4 address; port 0 selects a free one. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.bind((host, port))
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


class Server:
    """A running agent, from ``start`` until ``close``, which closes its socket."""

    def __init__(self, device: ManagedDevice, sock: socket.socket) -> None:
        self._device = device
        self.host, self.port = sock.getsockname()
        self._socket = sock
        self._configured: tuple[Credentials, bool] = Credentials(), False  # with the fault of wrong credentials
        self._writers: set[tuple[int, str]] = set()  # security model and name
        self._transport = _Transport(device, self.prepare)
        self._engine = _engine(device)
        Responder(self._engine, device, lambda model, name: (model, name) in self._writers)

    @property
    def requests(self) -> Mapping[str, int]:
        """Number of accepted requests by kind: get, get_next, get_bulk, set."""
        return self._device.requests

    async def start(self) -> None:
        """Start to receive requests."""
        loop = asyncio.get_running_loop()
        self.prepare()
        dispatcher = AsyncioDispatcher(loop=loop, timeout=_TIMER)
        self._engine.register_transport_dispatcher(dispatcher)
        dispatcher.register_transport(udp.DOMAIN_NAME, self._transport)
        await loop.create_datagram_endpoint(lambda: self._transport, sock=self._socket)

    async def close(self) -> None:
        """Stop receiving requests."""
        self._engine.close_dispatcher()
        self._socket.close()

    def prepare(self) -> None:
        """Apply changed credentials of the device, before a request is processed."""
        desired = self._device.credentials, self._device.faults.wrong_credentials
        if desired == self._configured:
            return
        before, _wrong = self._configured
        for user in before.users:
            config.delete_v3_user(self._engine, user.name)
        for number, _community in enumerate(before.communities):
            config.delete_v1_system(self._engine, f"community-{number}")
        self._configure(*desired)
        self._configured = desired

    def send(self, datagram: bytes, to: tuple[str, int]) -> None:
        """Send a datagram that is not a response."""
        if self._transport.transport is not None:
            self._device.traffic.sent(len(datagram))
            self._transport.transport.sendto(datagram, to)

    def _configure(self, credentials: Credentials, wrong: bool) -> None:
        self._writers = {(3, user.name) for user in credentials.users if user.write}
        for user in credentials.users:
            self._add_user(user, wrong)
        for number, community in enumerate(credentials.communities):
            name = f"community-{number}"
            text = secrets.token_hex(16) if wrong else community.name
            config.add_v1_system(self._engine, name, text, securityName=name)
            if community.write:
                self._writers |= {(1, name), (2, name)}

    def _add_user(self, user: User, wrong: bool) -> None:
        keys: tuple[str | bytes, ...] = user.auth_key, user.priv_key
        kind = config.USM_KEY_TYPE_PASSPHRASE
        if wrong:
            keys = secrets.token_hex(16), secrets.token_hex(16)
        elif user.localized:
            keys = bytes.fromhex(user.auth_key), bytes.fromhex(user.priv_key)
            kind = config.USM_KEY_TYPE_LOCALIZED
        auth, priv = keys
        types = {"authKeyType": kind, "privKeyType": kind}
        config.add_v3_user(self._engine, user.name, _AUTH[user.auth], auth, _PRIV[user.priv], priv, **types)


class _Transport(udp.UdpAsyncioTransport):  # type: ignore[misc]  # pysnmp has no types
    """UDP transport of the engine. It counts datagrams, and drops or delays them for a fault."""

    def __init__(self, device: ManagedDevice, prepare: Callable[[], None]) -> None:
        super().__init__(loop=asyncio.get_running_loop())
        self._device = device
        self._prepare = prepare

    def datagram_received(self, datagram: bytes, address: Any) -> None:
        """Pass a datagram to the engine; asyncio calls this."""
        self._device.traffic.received(len(datagram))
        if not self._device.listening:
            return
        if self._device.faults.slow > 0:
            self.loop.call_later(self._device.faults.slow, self._process, datagram, address)
        else:
            self._process(datagram, address)

    def send_message(self, message: bytes, address: Any) -> None:
        """Send a datagram; the engine calls this."""
        self._device.traffic.sent(len(message))
        super().send_message(message, address)

    def _process(self, datagram: bytes, address: Any) -> None:
        if self._callback_function is not None:  # None after close
            self._prepare()
            try:
                self._callback_function(self, address, datagram)
            except Exception as error:  # noqa: BLE001  pysnmp raises any exception for an invalid message
                _log.debug("invalid datagram", device=self._device.name, sender=address[0], error=repr(error))


def _engine(device: ManagedDevice) -> Any:
    """Return an engine with the id and the boot count of this device.

    The id is set after the engine is created: otherwise pysnmp writes its own files to the temporary folder.
    """
    engine = SnmpEngine(maxMessageSize=LONGEST_MESSAGE)
    builder = engine.get_mib_builder()
    (identity,) = builder.import_symbols("__SNMP-FRAMEWORK-MIB", "snmpEngineID")
    identity.syntax = identity.syntax.clone(OctetString(device.engine_id))
    engine.snmpEngineID = identity.syntax
    (boots,) = builder.import_symbols("__SNMP-FRAMEWORK-MIB", "snmpEngineBoots")
    boots.syntax = boots.syntax.clone(device.count_boot())
    return engine
