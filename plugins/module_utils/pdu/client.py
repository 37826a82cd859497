# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SNMP client of a PDU: reads and writes many variables with few requests."""

from __future__ import annotations

import typing as t

from .session import TOO_BIG, Connection, Oid, PduError, Session, Value, decode_value

# Limits of a request, which then fits one Ethernet datagram (1472 bytes) with names as long as those of PDUs. If an
# agent reports tooBig, the request is split.
_VARIABLES = 40
_BYTES = 1200
_OVERHEAD = 24  # bytes of a variable in addition to its text

# Error status (RFC 3416, 3) -> cause and remedy.
_READ_ONLY = "no write access with these credentials. Use those of a user with write access"
_NO_VARIABLE = "the PDU has no such variable"
_INVALID = "the PDU does not accept this value"
_STATUS_CAUSES = {
    2: _NO_VARIABLE,
    3: _INVALID,
    4: _READ_ONLY,
    5: "the PDU reports no reason",
    6: _READ_ONLY,
    7: "the PDU does not accept this type of value",
    8: "the PDU does not accept a value of this length",
    10: _INVALID,
    11: _NO_VARIABLE,
    12: "the value is inconsistent with other values",
    13: "the PDU has no resources for it",
    14: "the PDU failed to write it. Check its event log",
    15: "the PDU failed to write it and to undo the request. Check its event log",
    16: _READ_ONLY,
    17: _READ_ONLY,
    18: _NO_VARIABLE,
}


class RequestRejected(PduError):
    """Raised when the PDU rejects the variable ``oid``; ``reason`` is the cause and remedy, as a clause."""

    def __init__(self, address: str, oid: Oid, status: int) -> None:
        self.oid = oid
        self.status = status
        self.reason = _STATUS_CAUSES.get(status, "error %d" % status)
        super().__init__("%s rejected variable %s: %s." % (address, ".".join(map(str, oid)), self.reason))


class PduClient:
    """Client of the SNMP agent of one PDU. The first request opens the socket."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._session = Session(connection)

    @property
    def requests(self) -> int:
        """Number of requests so far."""
        return self._session.requests

    def close(self) -> None:
        """Close the socket and the event loop."""
        self._session.close()

    def get(self, oids: t.Sequence[Oid]) -> dict[Oid, Value]:
        """Return the values of these variables, with as few requests as possible. Raises PduError."""
        found: dict[Oid, Value] = {}
        for batch in _batches([(oid, None) for oid in oids]):
            found.update(self._get(batch))
        return found

    def set(self, values: t.Sequence[tuple[Oid, Value]], once: bool = False) -> None:
        """Write these variables in this order, with as few requests as possible.

        The agent runs a request completely or not at all (RFC 3416, 4.2.5). No further request is sent after a
        failure. With ``once``, a request without a response is not retried, for commands that must not run twice.
        Raises PduError, and RequestRejected for a variable.
        """
        for batch in _batches(values):
            self._set(batch, 0 if once else self.connection.retries)

    def _get(self, batch: list[tuple[Oid, Value]]) -> dict[Oid, Value]:
        status, index, response = self._session.request(
            "get_cmd", batch, self.connection.community, self.connection.retries
        )
        if status == TOO_BIG and len(batch) > 1:
            half = len(batch) // 2
            return {**self._get(batch[:half]), **self._get(batch[half:])}
        if _STATUS_CAUSES.get(status) == _READ_ONLY:
            user = "user '%s'" % self.connection.username
            raise PduError(
                "Cannot read from %s: %s has no read access. Grant read access on the PDU, and set security_level to "
                "the level configured there." % (self.connection.address, user if self._session.v3 else "the community")
            )
        if status:
            raise RequestRejected(self.connection.address, _variable_at(batch, index), status)
        return {tuple(oid): decode_value(value) for oid, value in response}

    def _set(self, batch: t.Sequence[tuple[Oid, Value]], retries: int) -> None:
        community = self.connection.write_community or self.connection.community
        status, index, _response = self._session.request("set_cmd", batch, community, retries)
        if status == TOO_BIG and len(batch) > 1:
            half = len(batch) // 2
            self._set(batch[:half], retries)
            self._set(batch[half:], retries)
        elif status:
            raise RequestRejected(self.connection.address, _variable_at(batch, index), status)


def _batches(values: t.Sequence[tuple[Oid, Value]]) -> list[list[tuple[Oid, Value]]]:
    """Split the variables, in order, into as few requests as possible."""
    batches: list[list[tuple[Oid, Value]]] = []
    free_bytes = 0
    for oid, value in values:
        size = _OVERHEAD + (len(value.encode()) if isinstance(value, str) else 0)
        if not batches or len(batches[-1]) == _VARIABLES or size > free_bytes:
            batches.append([])
            free_bytes = _BYTES
        batches[-1].append((oid, value))
        free_bytes -= size
    return batches


def _variable_at(batch: t.Sequence[tuple[Oid, Value]], index: int) -> Oid:
    """Return the variable of an error index, from 1; for 0 (none), the first."""
    return batch[index - 1 if 1 <= index <= len(batch) else 0][0]
