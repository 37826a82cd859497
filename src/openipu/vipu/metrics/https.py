# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS for the metrics."""

from __future__ import annotations

import ssl
from pathlib import Path


class HttpsError(Exception):
    """The files of a TLS end-point cannot be used; one sentence."""


def server_context(certificate: Path, key: Path, ca: Path | None) -> ssl.SSLContext:
    """TLS with PEM files; with an authority, clients need a certificate of it. Raises HttpsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, _no_password)
    except (OSError, ValueError) as error:
        files = f"the certificate {str(certificate)!r} with the key {str(key)!r}"
        raise HttpsError(f"Cannot use {files} for metrics: {_clause(error)}.") from None
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except OSError as error:
            raise HttpsError(f"Cannot use the authority {str(ca)!r} for metrics: {_clause(error)}.") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    raise ValueError("the key has a password, and nobody is there to type it")


def _clause(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason.replace("_", " ").lower() if error.reason else "this is not PEM"
    return getattr(error, "strerror", None) or str(error)
