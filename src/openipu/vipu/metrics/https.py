# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS for the metrics."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from openipu.vipu.tls import stamps

_log: structlog.stdlib.BoundLogger = structlog.get_logger("openipu.vipu.metrics")


class HttpsError(Exception):
    """The files of a TLS end-point cannot be used; one sentence."""


class Https:
    """TLS with PEM files; with an authority, clients need a certificate of it.

    Files that are replaced count from the next connection on. While the new ones cannot be used, the
    log says why, and the old ones count.
    """

    def __init__(self, certificate: Path, key: Path, ca: Path | None) -> None:
        """Raises HttpsError."""
        self._certificate, self._key, self._ca = certificate, key, ca
        self._files = tuple(file for file in (certificate, key, ca) if file is not None)
        self._seen = stamps(self._files)
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """For one connection; from one thread at a time."""
        now = stamps(self._files)
        if now != self._seen:
            self._seen = now
            try:
                self._context = self._load()
            except HttpsError as error:
                _log.warning("new certificates cannot be used", reason=str(error))
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
    raise ValueError("the key has a password, and nobody is there to type it")


def _clause(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason.replace("_", " ").lower() if error.reason else "this is not PEM"
    return getattr(error, "strerror", None) or str(error)
