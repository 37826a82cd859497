# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU over SNMP: many variables in a request, and an error is a sentence with a remedy.

pysnmp speaks the protocol. Each client has an engine and an event loop of its own, made with the first
request, so that nothing is shared between the many that run at the same time, and nothing across a fork.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import typing as t
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from ..reconcile import SentenceError

try:
    from pyasn1.type.univ import Integer  # type: ignore[import-untyped]  # it has no types
    from pysnmp import error as snmp_error
    from pysnmp.hlapi.v3arch import asyncio as snmp
    from pysnmp.proto import errind
except ImportError:
    HAS_PYSNMP = False
else:
    HAS_PYSNMP = True

    class _Numbered(snmp.ObjectType):  # type: ignore[misc]  # pysnmp has no types
        """A variable by its number: pysnmp takes longer to find a name for it than the PDU takes to answer."""

        def __init__(self, oid: tuple[int, ...], value: t.Any) -> None:
            self._pair = (snmp.ObjectIdentifier(oid), value)

        def __getitem__(self, index: int) -> t.Any:
            return self._pair[index]

        def resolve_with_mib(self, *args: t.Any, **more: t.Any) -> _Numbered:
            return self

    # To make an engine is most of what a task does. This one is there before Ansible forks a worker for each
    # PDU, each of which takes its copy; who comes after in the same process makes another.
    _READY = [snmp.SnmpEngine()]

Oid = tuple[int, ...]
# None is a variable that the agent does not have.
Value: t.TypeAlias = "int | str | IPv4Address | None"

# Names of options, and pysnmp's. Keys of the longer AES are stretched as Net-SNMP does it.
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

# What is sure to fit one datagram of an Ethernet (1472 bytes), with names of the length that PDUs take; an
# agent that wants less says so, and gets it.
_VARIABLES = 40
_BYTES = 1200
_OVERHEAD = 24  # bytes of a variable beside its text
_TOO_BIG = 1
_USM = 3  # the security model of SNMPv3
_SHORTEST_KEY = 8  # RFC 3414, 11.2

# RFC 3416, 3: what an agent says of a variable, and what helps.
_MAY_NOT = "it may not be written with these credentials, so use those of a user who may write"
_REFUSALS = {
    2: "it has no such variable",
    3: "it does not take this value",
    4: _MAY_NOT,
    5: "it gives no reason",
    6: _MAY_NOT,
    7: "it does not take this kind of value",
    8: "it does not take a value of this length",
    10: "it does not take this value",
    11: "it has no such variable",
    12: "the value does not go together with others",
    13: "it has no room for it",
    14: "it could not write it, so look at its event log",
    15: "it could not write it nor take back what it had written, so look at its event log",
    16: _MAY_NOT,
    17: _MAY_NOT,
    18: "it has no such variable",
}


@dataclass(frozen=True)
class Connection:
    """Where a PDU is and who asks; ``timeout`` is in seconds, of one try, of which there are ``retries`` + 1.

    With ``version`` v3, a level below auth_priv leaves out keys; with v2c the communities count.
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
        """For sentences."""
        return ("[%s]:%d" if ":" in self.host else "%s:%d") % (self.host, self.port)


class PduError(SentenceError):
    """The PDU could not be asked; ``lost`` when nobody knows whether it did what it was asked."""

    def __init__(self, sentence: str, lost: bool = False) -> None:
        super().__init__(sentence)
        self.lost = lost


class Refused(PduError):
    """The PDU refused the variable ``oid``; ``reason`` says why and what helps, in a part of a sentence."""

    def __init__(self, address: str, oid: Oid, status: int) -> None:
        self.oid = oid
        self.status = status
        self.reason = _REFUSALS.get(status, "error %d" % status)
        super().__init__("%s refused %s: %s." % (address, ".".join(map(str, oid)), self.reason))


class Agent:
    """Requests to the agent of one PDU; nothing is sent before the first."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.requests = 0
        self._runner: asyncio.Runner | None = None
        self._engine: t.Any = None
        self._heard = False  # whether an SNMPv3 agent answered anything at all
        self._targets: dict[int, t.Any] = {}  # by the number of retries

    @property
    def _v3(self) -> bool:
        return self.connection.version == "v3"

    def close(self) -> None:
        """Let go of socket and event loop."""
        if self._runner is not None:
            if self._engine is not None:
                self._runner.run(_called(self._engine.close_dispatcher))
            self._runner.close()
            self._runner = self._engine = None
            self._targets = {}

    def get(self, oids: t.Sequence[Oid]) -> dict[Oid, Value]:
        """The values of these variables, in as few requests as they fit. Raises PduError."""
        found: dict[Oid, Value] = {}
        for batch in _batches([(oid, None) for oid in oids]):
            found.update(self._get(batch))
        return found

    def set(self, values: t.Sequence[tuple[Oid, Value]], once: bool = False) -> None:
        """Write these variables in this order, in as few requests as they fit.

        A request is carried out as a whole or not at all (RFC 3416, 4.2.5); after one that fails no other
        is sent. ``once`` is for what must not be done twice: a request without an answer is not sent again.
        Raises PduError, and Refused for a variable.
        """
        for batch in _batches(values):
            self._set(batch, 0 if once else self.connection.retries)

    def _get(self, batch: list[tuple[Oid, Value]]) -> dict[Oid, Value]:
        status, index, answer = self._ask("get_cmd", batch, self.connection.community, self.connection.retries)
        if status == _TOO_BIG and len(batch) > 1:
            half = len(batch) // 2
            return {**self._get(batch[:half]), **self._get(batch[half:])}
        if _REFUSALS.get(status) == _MAY_NOT:
            raise PduError(
                "%s lets %s in and shows it nothing: give that user or community the right to read, on the PDU, and "
                "security_level as it is there."
                % (self.connection.address, "'%s'" % self.connection.username if self._v3 else "the community")
            )
        if status:
            raise Refused(self.connection.address, _named(batch, index), status)
        return {tuple(oid): _plain(value) for oid, value in answer}

    def _set(self, batch: t.Sequence[tuple[Oid, Value]], retries: int) -> None:
        community = self.connection.write_community or self.connection.community
        status, index, _answer = self._ask("set_cmd", batch, community, retries)
        if status == _TOO_BIG and len(batch) > 1:
            half = len(batch) // 2
            self._set(batch[:half], retries)
            self._set(batch[half:], retries)
        elif status:
            raise Refused(self.connection.address, _named(batch, index), status)

    def _ask(
        self, verb: str, batch: t.Sequence[tuple[Oid, Value]], community: str | None, retries: int
    ) -> tuple[int, int, t.Any]:
        """One request; gives error status, error index and the variables of the answer."""
        if not HAS_PYSNMP:
            raise PduError("The Python library pysnmp is missing on the host of the task: pip install pysnmp.")
        credentials = self._credentials(community)
        if self._runner is None:
            self._runner = asyncio.Runner()
            # pysnmp raises into the loop what arrives and cannot be read; it is as good as lost.
            self._runner.get_loop().set_exception_handler(_ignore)
        self.requests += 1
        try:
            trouble, status, index, answer = self._runner.run(self._send(verb, batch, credentials, retries))
        except snmp_error.PySnmpError as error:
            raise PduError(
                "Cannot ask %s by SNMP (%s): check the options of the connection." % (self.connection.address, error)
            ) from None
        if trouble is not None:
            if isinstance(trouble, errind.TooBig):
                return _TOO_BIG, 0, ()
            raise self._trouble(trouble, retries)
        return int(status), int(index), answer

    async def _send(self, verb: str, batch: t.Sequence[tuple[Oid, Value]], credentials: t.Any, retries: int) -> t.Any:
        if self._engine is None:
            self._engine = _engine()
            self._engine.observer.register_observer(self._hear, "rfc3414.processIncomingMsg")
        if retries not in self._targets:
            self._targets[retries] = await self._target(retries)
        variables = [_Numbered(oid, _typed(value)) for oid, value in batch]
        return await getattr(snmp, verb)(
            self._engine,
            credentials,
            self._targets[retries],
            snmp.ContextData(contextName=self.connection.context.encode()),
            *variables,
            lookupMib=False,
        )

    def _hear(self, *_execution: t.Any) -> None:
        self._heard = True

    async def _target(self, retries: int) -> t.Any:
        connection = self.connection
        try:
            found = socket.getaddrinfo(connection.host, connection.port, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError):
            raise PduError("No address is known of %s: check host." % connection.host) from None
        family, address = found[0][0], found[0][4]
        kind = snmp.Udp6TransportTarget if family == socket.AF_INET6 else snmp.UdpTransportTarget
        return await kind.create(address[:2], timeout=connection.timeout, retries=retries)

    def _credentials(self, community: str | None) -> t.Any:
        """pysnmp's form of who asks. Raises PduError for what is missing."""
        connection = self.connection
        if not self._v3:
            if not community:
                raise PduError("SNMP v2c to %s takes a community: give one." % connection.address)
            return snmp.CommunityData(community, mpModel=1)  # noqa: S508 - it was asked for
        if not connection.username:
            raise PduError("SNMPv3 to %s takes a user: give username." % connection.address)
        given: dict[str, t.Any] = {}
        if connection.security_level != "no_auth_no_priv":
            given["authKey"] = self._key("auth_key", connection.auth_key)
            given["authProtocol"] = getattr(snmp, AUTH_PROTOCOLS[connection.auth_protocol])
        if connection.security_level == "auth_priv":
            given["privKey"] = self._key("priv_key", connection.priv_key)
            given["privProtocol"] = getattr(snmp, PRIV_PROTOCOLS[connection.priv_protocol])
        return snmp.UsmUserData(connection.username, **given)  # noqa: S509 - with both keys unless told otherwise

    def _key(self, option: str, key: str | None) -> str:
        connection = self.connection
        if not key:
            raise PduError(
                "SNMPv3 with security_level %s to %s takes %s: give it."
                % (connection.security_level, connection.address, option)
            )
        if len(key) < _SHORTEST_KEY:
            raise PduError(
                "The %s for %s is shorter than the %d characters that SNMPv3 takes: check it."
                % (option, connection.address, _SHORTEST_KEY)
            )
        return key

    def _trouble(self, trouble: t.Any, retries: int) -> PduError:
        connection = self.connection
        address, user = connection.address, connection.username
        if isinstance(trouble, errind.RequestTimedOut):
            if self._heard and self.connection.security_level == "auth_priv":
                # Net-SNMP, for one, says nothing to what it cannot decrypt, or to a context it does not have.
                return PduError(
                    "%s is there and did not answer '%s' within %g seconds: check priv_key, priv_protocol and context."
                    % (address, user, connection.timeout * (retries + 1)),
                    lost=True,
                )
            # Agents say nothing to a community that they do not know, and most have SNMP turned off to begin with.
            secret = "community" if not self._v3 else "that it lets this host use SNMPv3"
            return PduError(
                "%s did not answer within %g seconds: check that it is up, host and port, and %s."
                % (address, connection.timeout * (retries + 1), secret),
                lost=True,
            )
        for kind, sentence in (
            (errind.UnknownUserName, "%s knows no SNMPv3 user '%s': check username." % (address, user)),
            (
                errind.UnsupportedSecurityLevel,
                "%s does not let '%s' in with security_level %s: use the one that the user has there."
                % (address, user, connection.security_level),
            ),
            (
                (errind.WrongDigest, errind.AuthenticationFailure, errind.AuthenticationError),
                "%s does not let '%s' in: check auth_key and auth_protocol." % (address, user),
            ),
            (
                (errind.DecryptionError, errind.EncryptionError, errind.UnsupportedPrivProtocol),
                "%s and we cannot read each other as '%s': check priv_key and priv_protocol, and that the host of the "
                "task has the Python library cryptography." % (address, user),
            ),
            (
                (errind.NotInTimeWindow, errind.UnknownEngineID),
                "%s does not accept what is fresh as such: its clock went back, so restart its agent." % address,
            ),
        ):
            if isinstance(trouble, kind):
                return PduError(sentence)
        said = str(trouble)
        return PduError("%s cannot be asked by SNMP (%s): check the options of the connection." % (address, said))


def _engine() -> t.Any:
    """An engine, with salts for encryption that no other process begins with too (RFC 3826, 3.1.2.1)."""
    engine = _READY.pop() if _READY else snmp.SnmpEngine()
    for service in engine.security_models[_USM].PRIV_SERVICES.values():
        if hasattr(service, "local_int"):
            service.local_int = secrets.randbits(64)
    return engine


def _ignore(*_error: t.Any) -> None:
    """For what nobody can do anything about."""


async def _called(function: t.Callable[[], None]) -> None:
    """For what must be called while the loop runs."""
    function()


def _batches(values: t.Sequence[tuple[Oid, Value]]) -> list[list[tuple[Oid, Value]]]:
    """The variables in order, in as few parts as fit a request each."""
    batches: list[list[tuple[Oid, Value]]] = []
    room = 0
    for oid, value in values:
        size = _OVERHEAD + (len(value.encode()) if isinstance(value, str) else 0)
        if not batches or len(batches[-1]) == _VARIABLES or size > room:
            batches.append([])
            room = _BYTES
        batches[-1].append((oid, value))
        room -= size
    return batches


def _named(batch: t.Sequence[tuple[Oid, Value]], index: int) -> Oid:
    """The variable that an error index (from 1, or 0 for none) names."""
    return batch[index - 1 if 1 <= index <= len(batch) else 0][0]


def _typed(value: Value) -> t.Any:
    if value is None:
        return snmp.Null("")
    if isinstance(value, IPv4Address):
        return snmp.IpAddress(str(value))
    return snmp.Integer32(value) if isinstance(value, int) else snmp.OctetString(value.encode())


def _plain(value: t.Any) -> Value:
    """What stands for no value is None, as is a kind of value that no variable of a PDU has."""
    if isinstance(value, snmp.IpAddress):
        return IPv4Address(bytes(value))
    if isinstance(value, snmp.OctetString):
        return bytes(value).rstrip(b"\0").decode(errors="replace")
    return int(value) if isinstance(value, Integer) else None
