# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate of a running server. A new one is used for the next connections, without a restart."""

from __future__ import annotations

import os
import ssl

from openipu.kubernetes.tls.certificates import KeyPair


class ServingCertificate:
    """Certificate with which the server answers. Connections fail until there is one."""

    def __init__(self) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.pair: KeyPair | None = None

    def use(self, pair: KeyPair) -> bool:
        """Use a key pair from now on. Return False if it is in use already. Raises ssl.SSLError."""
        if pair == self.pair:
            return False
        # OpenSSL reads files only. This one exists in memory, so the key reaches no disk.
        file = os.memfd_create("certificate")
        try:
            with os.fdopen(os.dup(file), "wb") as stream:
                stream.write(pair.certificate + pair.key)
            self.context.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)
        self.pair = pair
        return True
