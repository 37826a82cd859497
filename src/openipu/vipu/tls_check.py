# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether certificates will do, found out before anybody depends on them: by a handshake in memory."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from openipu.vipu import tls
from openipu.vipu.tls import CA, CLIENT, SERVER, TlsError
from openipu.vipu.tls_renewal import certificate


def check(directory: Path, host: str) -> datetime.datetime:
    """Let a client with ``directory/client`` call a server with ``directory/server`` at ``host``.

    Both show their certificates and judge that of the other, as they will on the network. Gives when the
    first of the two certificates ends; raises TlsError.
    """
    contexts = {}
    for role, purpose in ((SERVER, ssl.Purpose.CLIENT_AUTH), (CLIENT, ssl.Purpose.SERVER_AUTH)):
        ca, shown, key = (directory / role / name for name in (CA, f"{role}.crt", f"{role}.key"))
        tls.check((ca, shown, key))
        context = contexts[role] = ssl.create_default_context(purpose, cafile=str(ca))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(shown, key)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts[SERVER].wrap_bio(to_server, to_client, server_side=True)
    client = contexts[CLIENT].wrap_bio(to_client, to_server, server_hostname=host)
    for _ in range(4):  # flights of a handshake, and what a client says after it
        for side, role in ((client, SERVER), (server, CLIENT)):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                file = directory / role / f"{role}.crt"
                raise TlsError(
                    f"The certificate {str(file)!r} will not do for {host}: {error.verify_message.rstrip('.').lower()}."
                ) from None
            except ssl.SSLError as error:
                raise TlsError(
                    f"With the certificates in {str(directory)!r} no connection comes about: {error.reason}."
                ) from None
    return min(certificate(directory / role / f"{role}.crt").not_valid_after_utc for role in (SERVER, CLIENT))
