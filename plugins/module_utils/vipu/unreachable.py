# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes of failed connections to a controller, from the messages of gRPC."""

from __future__ import annotations

# Error text of the library -> message for users. The first match applies.
_HANDSHAKES = (
    (
        "security handshaker",
        "was not called: the CA, the certificate or the key is not PEM, or the key belongs to another certificate. "
        "Check ca_path, client_cert and client_key.",
    ),
    ("Failed parsing HTTP/2", "does not use gRPC. Check host and port."),
    ("WRONG_VERSION_NUMBER", "does not use TLS. Omit ca_path, client_cert and client_key, or check the port."),
    ("certificate has expired", "has an expired certificate. Renew it on the server."),
    ("certificate is not yet valid", "has a certificate that is not valid yet. Check the clocks of both hosts."),
    ("Hostname Verification", "has a certificate for another name. Use a name or address that the certificate lists."),
    (
        "is not in peer certificate",
        "has a certificate for another name. Use a name or address that the certificate lists.",
    ),
    ("CERTIFICATE_VERIFY_FAILED", "has a certificate that is not signed by the given CA. Check ca_path."),
    ("Tls handshake failed", "rejected the TLS handshake. Check ca_path, client_cert and client_key."),
)


def unreachable(details: str, *, secure: bool) -> str:
    """Return the cause of a failed connection as a clause, and the remedy, from the details of gRPC."""
    for sign, message in _HANDSHAKES:
        if sign in details:
            return message
    if "Socket closed" in details or "Connection reset" in details:
        if secure:
            return (
                "closed the connection during the handshake: it requires a client certificate signed by its CA "
                "and not expired. Check client_cert and client_key."
            )
        return "closed the connection. If it uses TLS, set ca_path, client_cert and client_key."
    if "resolving" in details or "lookup failed" in details:
        return "was not found: the host name cannot be resolved. Check the host."
    reason = "connection refused" if "Connection refused" in details else _tail(details)
    return "does not respond (%s). Check host and port, and that vipu-server runs there." % reason


def _tail(details: str) -> str:
    """Return the cause from the details of gRPC, without the addresses before it."""
    return details.rpartition(": ")[2].strip().rstrip(".") or "no reason given"
