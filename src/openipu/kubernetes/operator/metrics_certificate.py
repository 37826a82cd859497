# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate of the metrics endpoint: mounted files, or one that exists only in the memory of this process."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

from openipu.kubernetes.tls import certificates
from openipu.kubernetes.tls.mounted import MountedCertificate
from openipu.kubernetes.tls.serving_certificate import ServingCertificate

# A new process has a new certificate, so the validity need not be short.
_VALIDITY = datetime.timedelta(days=3650)


class CertificateError(ValueError):
    """Raised when the files of a certificate cannot be used."""

    error_code = "OPU614"


class MetricsCertificate:
    """Certificate of a server. ``context`` is replaced in place, so the next connection has the new certificate."""

    def __init__(self, folder: Path | None, name: str, seconds: float = 10.0) -> None:
        """``folder``: has ``tls.crt`` and ``tls.key``; None for a new certificate. ``name``: of the server.

        ``seconds``: between checks for replaced files.

        Raises CertificateError.
        """
        self._serving = ServingCertificate()
        self._mounted = None if folder is None else MountedCertificate(folder, self._serving, seconds)
        if self._mounted is None:
            self._serving.use(certificates.issue([name, "localhost"], _VALIDITY).pair)
            return
        try:
            self._mounted.check()
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
            raise CertificateError(
                f"Cannot use tls.crt and tls.key of {folder} for metrics: {reason.rstrip('.')}. Mount a certificate "
                "with its key, or omit --metrics-certificates."
            ) from None

    @property
    def context(self) -> ssl.SSLContext:
        """Settings of TLS for the server."""
        return self._serving.context

    async def run(self) -> None:
        """Follow replaced files until cancelled. If new files are invalid, the previous ones remain in use."""
        if self._mounted is None:
            await asyncio.Event().wait()
        else:
            await self._mounted.run()
