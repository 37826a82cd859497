# SPDX-License-Identifier: GPL-3.0-or-later
"""Access to the metrics endpoint: names of the host in requests, and the bearer token."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Collection
from pathlib import Path

import structlog

from openipu.vipu.tls.load import file_stamps

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")  # as in RFC 6750
_OTHERS = 0o077

_log: structlog.stdlib.BoundLogger = structlog.get_logger("openipu.vipu.metrics")


class TokenError(Exception):
    """Raised when the file of a token cannot be used."""

    error_code = "OPU619"


class Token:
    """Token from a file that only its owner can read.

    A replaced file applies to the next request. If it is invalid, the reason is logged and the previous
    token remains in use.
    """

    def __init__(self, file: Path) -> None:
        """Load the file; raises TokenError."""
        self._file = file
        self._seen = file_stamps((file,))
        self._value = self._load()

    def accepts(self, header: str) -> bool:
        """Return whether the value of an Authorization header has the token."""
        now = file_stamps((self._file,))
        if now != self._seen:
            self._seen = now
            try:
                self._value = self._load()
            except TokenError as error:
                _log.warning("cannot use new token", reason=str(error))
        scheme, _, given = header.partition(" ")
        return scheme.lower() == "bearer" and _equal(given.strip().encode(errors="replace"), self._value)

    def _load(self) -> bytes:
        problem = f"Cannot use the token file {str(self._file)!r} for metrics"
        try:
            mode = self._file.stat().st_mode & _OTHERS
            value = self._file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenError(f"{problem}: {getattr(error, 'strerror', None) or 'it is not text'}.") from None
        if mode:
            raise TokenError(f"{problem}: other users can access it. Set its mode to 0600.")
        if not _TOKEN.fullmatch(value):
            raise TokenError(
                f"{problem}: it has no token. Write at least 16 letters and digits to it, such as the output of "
                "'openssl rand -hex 32'."
            )
        return value.encode()


def is_known_host(header: str, names: Collection[str]) -> bool:
    """Return whether a Host header has an IP address, or a name of this endpoint.

    A page in a browser can make its own name resolve to the address of this endpoint (DNS rebinding).
    """
    name = re.sub(r":\d*$", "", header).strip("[]").rstrip(".").lower()
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in {"localhost", socket.gethostname().lower(), *map(str.lower, names)}
    return True


def _equal(given: bytes, expected: bytes) -> bool:
    return hmac.compare_digest(given, expected)
