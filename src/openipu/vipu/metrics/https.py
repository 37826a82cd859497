# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS of the metrics endpoint."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from openipu.vipu.tls.load import file_stamps

_log: structlog.stdlib.BoundLogger = structlog.get_logger("openipu.vipu.metrics")


class HttpsError(Exception):
    """Raised when the files of a TLS endpoint cannot be used."""

    error_code = "OPU614"


class Https:
    """TLS with PEM files; with an authority, clients need a certificate of it.

    Replaced files apply to the next connection. If they are invalid, the reason is logged and the
    previous ones remain in use.
    """

    def __init__(self, certificate: Path, key: Path, ca: Path | None) -> None:
        """Load the files; raises HttpsError."""
        self._certificate, self._key, self._ca = certificate, key, ca
        self._files = tuple(file for file in (certificate, key, ca) if file is not None)
        self._seen = file_stamps(self._files)
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Return the context of a new connection. Call it from one thread at a time."""
        now = file_stamps(self._files)
        if now != self._seen:
            self._seen = now
            try:
                self._context = self._load()
            except HttpsError as error:
                _log.warning("cannot use new certificates", reason=str(error))
        return self._context

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self._certificate, self._key, _no_password)
        except (OSError, ValueError) as error:
            files = f"the certificate {str(self._certificate)!r} with the key {str(self._key)!r}"
            raise HttpsError(f"Cannot use {files} for metrics: {_clause(error)}.") from None
        if self._ca is not None:
            try:
                context.load_verify_locations(self._ca)
            except OSError as error:
                raise HttpsError(f"Cannot use the authority {str(self._ca)!r} for metrics: {_clause(error)}.") from None
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _no_password() -> str:
    raise ValueError("the key has a password")


def _clause(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason.replace("_", " ").lower() if error.reason else "it is not PEM"
    return getattr(error, "strerror", None) or str(error)
