# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate in mounted files, which kubelet replaces, for example after cert-manager has renewed them."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import structlog

from openipu.kubernetes.tls import certificates
from openipu.kubernetes.tls.certificates import KeyPair
from openipu.kubernetes.tls.serving_certificate import ServingCertificate

_log = structlog.get_logger("openipu.kubernetes.tls.mounted")


class MountedCertificate:
    """Reads ``tls.crt`` and ``tls.key`` of a folder again and again."""

    def __init__(self, folder: Path, serving: ServingCertificate, seconds: float = 30.0) -> None:
        self._folder = folder
        self._serving = serving
        self._seconds = seconds
        self.ready = False

    async def run(self) -> None:
        """Follow changes of the files until cancelled."""
        failed = ""
        while True:
            try:
                self.check()
                failed = ""
            except (OSError, ValueError) as error:  # kubelet may be replacing the files
                if str(error) != failed:
                    _log.error("cannot use the certificate", folder=str(self._folder), error=str(error))
                failed = str(error)
            await asyncio.sleep(self._seconds)

    def check(self) -> None:
        """Use the files. Raises OSError, also ssl.SSLError, and ValueError; the last certificate stays in use then."""
        pair = KeyPair((self._folder / "tls.crt").read_bytes(), (self._folder / "tls.key").read_bytes())
        if not certificates.has_key(pair):
            raise ssl.SSLError("tls.key does not belong to tls.crt.")
        if self._serving.use(pair):
            _log.info("certificate in use", expires=str(certificates.expiry(pair)))
        self.ready = True
