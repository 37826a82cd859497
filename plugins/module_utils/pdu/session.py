# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP session with one PDU: credentials, single requests, and error messages with a remedy.

pysnmp implements the protocol. Each session creates its own engine and event loop with the first request. So
concurrent sessions share nothing, and nothing is shared across a fork.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import typing as t
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from ..garbage import large_import
from ..reconcile import UserError

try:
    with large_import():
        from pyasn1.type.univ import Integer  # type: ignore[import-untyped]  # it has no types
        from pysnmp import error as snmp_error
        from pysnmp.hlapi.v3arch import asyncio as snmp
        from pysnmp.proto import errind
        from pysnmp.proto.rfc3412 import MsgAndPduDispatcher
except ImportError:
    HAS_PYSNMP = False
else:
    HAS_PYSNMP = True

    class _NumericVariable(snmp.ObjectType):  # type: ignore[misc]  # pysnmp has no types
        """Variable with a numeric name: pysnmp's name resolution takes longer than the response of a PDU."""

        def __init__(self, oid: tuple[int, ...], value: t.Any) -> None:
            self._pair = (snmp.ObjectIdentifier(oid), value)

        def __getitem__(self, index: int) -> t.Any:
            return self._pair[index]

        def resolve_with_mib(self, *args: t.Any, **more: t.Any) -> _NumericVariable:
            return self


Oid = tuple[int, ...]
# None: the agent does not have the variable.
Value: t.TypeAlias = "int | str | IPv4Address | None"

# Option value -> pysnmp's name. AES192 and AES256 keys are localized as in Net-SNMP.
AUTH_PROTOCOLS = {
    "md5": "USM_AUTH_HMAC96_MD5",
    "sha": "USM_AUTH_HMAC96_SHA",
    "sha224": "USM_AUTH_HMAC128_SHA224",
    "sha256": "USM_AUTH_HMAC192_SHA256",
    "sha384": "USM_AUTH_HMAC256_SHA384",
    "sha512": "USM_AUTH_HMAC384_SHA512",
}
PRIV_PROTOCOLS = {
    "des": "USM_PRIV_CBC56_DES",
    "aes": "USM_PRIV_CFB128_AES",
    "aes192": "USM_PRIV_CFB192_AES_BLUMENTHAL",
    "aes256": "USM_PRIV_CFB256_AES_BLUMENTHAL",
}

TOO_BIG = 1  # error status
_USM = 3  # the security model of SNMPv3
_SHORTEST_KEY = 8  # RFC 3414, 11.2


@dataclass(frozen=True)
class Connection:
    """Address and credentials of a PDU. ``timeout`` is in s for each of ``retries`` + 1 tries.

    Version v3 uses the keys that ``security_level`` requires; v2c uses the communities.
    """

    host: str
    port: int = 161
    version: str = "v3"
    username: str | None = None
    security_level: str = "auth_priv"
    auth_protocol: str = "sha"
    auth_key: str | None = field(default=None, repr=False)
    priv_protocol: str = "aes"
    priv_key: str | None = field(default=None, repr=False)
    context: str = ""
    community: str | None = field(default=None, repr=False)
    write_community: str | None = field(default=None, repr=False)
    timeout: float = 2.0
    retries: int = 3

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return ("[%s]:%d" if ":" in self.host else "%s:%d") % (self.host, self.port)


class PduError(UserError):
    """Raised when a request fails. ``lost``: no response, so whether the PDU ran the request is unknown."""

    error_code = "OPU401"

    def __init__(self, message: str, lost: bool = False) -> None:
        super().__init__(message)
        self.lost = lost


class Session:
    """SNMP session with the agent of one PDU. The first request opens the socket."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests = 0
        self._runner: asyncio.Runner | None = None
        self._engine: t.Any = None
        self._responded = False  # whether an SNMPv3 agent sent any response
        self._targets: dict[int, t.Any] = {}  # by the number of retries

    @property
    def v3(self) -> bool:
        """Use of SNMPv3."""
        return self.connection.version == "v3"

    def close(self) -> None:
        """Close the socket and the event loop."""
        if self._runner is not None:
            if self._engine is not None:
                self._runner.run(_call_in_loop(self._engine.close_dispatcher))
            self._runner.close()
            self._runner = self._engine = None
            self._targets = {}

    def request(
        self, verb: str, batch: t.Sequence[tuple[Oid, Value]], community: str | None, retries: int
    ) -> tuple[int, int, t.Any]:
        """Send one request; return error status, error index and the variables of the response."""
        if not HAS_PYSNMP:
            raise PduError(
                "Cannot use SNMP: the Python library pysnmp is missing on the host of the task. "
                "Install it with pip install pysnmp."
            )
        credentials = self._credentials(community)
        if self._runner is None:
            self._runner = asyncio.Runner()
            # pysnmp raises errors of invalid messages into the loop; they are equivalent to a lost response.
            self._runner.get_loop().set_exception_handler(_ignore)
        self.requests += 1
        try:
            error, status, index, response = self._runner.run(self._send(verb, batch, credentials, retries))
        except snmp_error.PySnmpError as error:
            raise PduError(
                "Cannot send an SNMP request to %s: %s. Check the connection options."
                % (self.connection.address, error)
            ) from None
        if error is not None:
            if isinstance(error, errind.TooBig):
                return TOO_BIG, 0, ()
            raise self._error(error, retries)
        return int(status), int(index), response

    async def _send(self, verb: str, batch: t.Sequence[tuple[Oid, Value]], credentials: t.Any, retries: int) -> t.Any:
        if self._engine is None:
            self._engine = _engine()
            self._engine.observer.register_observer(self._note_response, "rfc3414.processIncomingMsg")
        if retries not in self._targets:
            self._targets[retries] = await self._target(retries)
        variables = [_NumericVariable(oid, _encode_value(value)) for oid, value in batch]
        return await getattr(snmp, verb)(
            self._engine,
            credentials,
            self._targets[retries],
            snmp.ContextData(contextName=self.connection.context.encode()),
            *variables,
            lookupMib=False,
        )

    def _note_response(self, *_execution: t.Any) -> None:
        self._responded = True

    async def _target(self, retries: int) -> t.Any:
        connection = self.connection
        try:
            found = socket.getaddrinfo(connection.host, connection.port, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError):
            raise PduError("Cannot resolve the host '%s'. Check host." % connection.host) from None
        family, address = found[0][0], found[0][4]
        kind = snmp.Udp6TransportTarget if family == socket.AF_INET6 else snmp.UdpTransportTarget
        return await kind.create(address[:2], timeout=connection.timeout, retries=retries)

    def _credentials(self, community: str | None) -> t.Any:
        """Return the credentials for pysnmp. Raises PduError for a missing option."""
        connection = self.connection
        if not self.v3:
            if not community:
                raise PduError("Cannot connect to %s with SNMPv2c: no community. Set community." % connection.address)
            return snmp.CommunityData(community, mpModel=1)  # noqa: S508 - on request only
        if not connection.username:
            raise PduError("Cannot connect to %s with SNMPv3: no user name. Set username." % connection.address)
        given: dict[str, t.Any] = {}
        if connection.security_level != "no_auth_no_priv":
            given["authKey"] = self._key("auth_key", connection.auth_key)
            given["authProtocol"] = getattr(snmp, AUTH_PROTOCOLS[connection.auth_protocol])
        if connection.security_level == "auth_priv":
            given["privKey"] = self._key("priv_key", connection.priv_key)
            given["privProtocol"] = getattr(snmp, PRIV_PROTOCOLS[connection.priv_protocol])
        return snmp.UsmUserData(connection.username, **given)  # noqa: S509 - with both keys by default

    def _key(self, option: str, key: str | None) -> str:
        connection = self.connection
        if not key:
            raise PduError(
                "Cannot connect to %s with security_level %s: no %s. Set %s."
                % (connection.address, connection.security_level, option, option)
            )
        if len(key) < _SHORTEST_KEY:
            raise PduError(
                "Cannot connect to %s: %s is shorter than %d characters, the minimum of SNMPv3. Check %s."
                % (connection.address, option, _SHORTEST_KEY, option)
            )
        return key

    def _error(self, error: t.Any, retries: int) -> PduError:
        connection = self.connection
        address, user = connection.address, connection.username
        if isinstance(error, errind.RequestTimedOut):
            if self._responded and self.connection.security_level == "auth_priv":
                # Net-SNMP, for example, ignores requests that it cannot decrypt, and those for unknown contexts.
                return PduError(
                    "Cannot log in to %s as '%s': it is up, but did not respond within %g s. "
                    "Check priv_key, priv_protocol and context." % (address, user, connection.timeout * (retries + 1)),
                    lost=True,
                )
            # Agents ignore an unknown community, and SNMP is off by default on most PDUs.
            check = "the community" if not self.v3 else "that it accepts SNMPv3 from this host"
            return PduError(
                "Cannot reach %s: no response within %g s. Check that it is up, host and port, and %s."
                % (address, connection.timeout * (retries + 1), check),
                lost=True,
            )
        for kind, message in (
            (
                errind.UnknownUserName,
                "Cannot log in to %s: it has no SNMPv3 user '%s'. Check username." % (address, user),
            ),
            (
                errind.UnsupportedSecurityLevel,
                "Cannot log in to %s as '%s': it does not accept security_level %s. Set the level of this user there."
                % (address, user, connection.security_level),
            ),
            (
                (errind.WrongDigest, errind.AuthenticationFailure, errind.AuthenticationError),
                "Cannot log in to %s as '%s': authentication failed. Check auth_key and auth_protocol."
                % (address, user),
            ),
            (
                (errind.DecryptionError, errind.EncryptionError, errind.UnsupportedPrivProtocol),
                "Cannot log in to %s as '%s': decryption failed. Check priv_key and priv_protocol, and that the host "
                "of the task has the Python library cryptography." % (address, user),
            ),
            (
                (errind.NotInTimeWindow, errind.UnknownEngineID),
                "Cannot log in to %s: it rejects requests as old, because its clock was set back. "
                "Restart its SNMP agent." % address,
            ),
        ):
            if isinstance(error, kind):
                return PduError(message)
        return PduError("Cannot send an SNMP request to %s: %s. Check the connection options." % (address, error))


# Modules that pysnmp loads with the first target and the first user.
_SESSION_MIBS = (
    "PYSNMP-MIB",
    "PYSNMP-SOURCE-MIB",
    "PYSNMP-USM-MIB",
    "SNMPv2-TM",
    "__PYSNMP-USM-MIB",
    "__SNMP-FRAMEWORK-MIB",
    "__SNMPv2-MIB",
)
_prepared: list[t.Any] = []  # dispatcher with the MIBs of one engine


def load_mibs() -> None:
    """Load the MIBs of one engine, which takes most of the time of a task.

    The first session of this process uses them, and of each process that is forked from it. Further sessions load
    them again.
    """
    if HAS_PYSNMP and not _prepared:
        dispatcher = MsgAndPduDispatcher()
        dispatcher.mib_instrum_controller.get_mib_builder().load_modules(*_SESSION_MIBS)
        _prepared.append(dispatcher)


def _engine() -> t.Any:
    """Return an engine with random initial salts, so that no two processes share them (RFC 3826, 3.1.2.1)."""
    engine = snmp.SnmpEngine(msgAndPduDsp=_prepared.pop() if _prepared else None)
    for service in engine.security_models[_USM].PRIV_SERVICES.values():
        if hasattr(service, "local_int"):
            service.local_int = secrets.randbits(64)
    return engine


def _ignore(*_error: t.Any) -> None:
    """Ignore an error of the event loop."""


async def _call_in_loop(function: t.Callable[[], None]) -> None:
    """Call a function inside the running loop."""
    function()


def _encode_value(value: Value) -> t.Any:
    if value is None:
        return snmp.Null("")
    if isinstance(value, IPv4Address):
        return snmp.IpAddress(str(value))
    return snmp.Integer32(value) if isinstance(value, int) else snmp.OctetString(value.encode())


def decode_value(value: t.Any) -> Value:
    """Return the value as a Python type; None for markers of missing values and for unexpected types."""
    if isinstance(value, snmp.IpAddress):
        return IPv4Address(bytes(value))
    if isinstance(value, snmp.OctetString):
        return bytes(value).rstrip(b"\0").decode(errors="replace")
    return int(value) if isinstance(value, Integer) else None
