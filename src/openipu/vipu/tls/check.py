# SPDX-License-Identifier: GPL-3.0-or-later
"""Check of certificates before use, by a handshake in memory."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from openipu.vipu.tls import load
from openipu.vipu.tls.load import CA, CLIENT, SERVER, TlsError
from openipu.vipu.tls.renew import certificate


def check(directory: Path, host: str) -> datetime.datetime:
    """Connect a client with ``directory/client`` to a server with ``directory/server`` at ``host``.

    Both verify the certificate of the other, as on the network. Returns the earlier end of validity of
    the two certificates; raises TlsError.
    """
    contexts = {}
    for role, purpose in ((SERVER, ssl.Purpose.CLIENT_AUTH), (CLIENT, ssl.Purpose.SERVER_AUTH)):
        ca, own, key = (directory / role / name for name in (CA, f"{role}.crt", f"{role}.key"))
        load.check((ca, own, key))
        context = contexts[role] = ssl.create_default_context(purpose, cafile=str(ca))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(own, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts[SERVER].wrap_bio(to_server, to_client, server_side=True)
    client = contexts[CLIENT].wrap_bio(to_client, to_server, server_hostname=host)
    for _ in range(4):  # flights of a handshake, and the last message of the client
        for side, role in ((client, SERVER), (server, CLIENT)):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                file = directory / role / f"{role}.crt"
                raise TlsError(
                    f"Cannot use certificate {str(file)!r} for {host}: {error.verify_message.rstrip('.').lower()}."
                ) from None
            except ssl.SSLError as error:
                raise TlsError(f"Cannot connect with the certificates in {str(directory)!r}: {error.reason}.") from None
    return min(certificate(directory / role / f"{role}.crt").not_valid_after_utc for role in (SERVER, CLIENT))
