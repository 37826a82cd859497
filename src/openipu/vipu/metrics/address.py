# SPDX-License-Identifier: GPL-3.0-or-later
"""Address of an endpoint of metrics. Programs that only print it need not load the client library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openipu.vipu.metrics.access import Token
    from openipu.vipu.metrics.https import Https

PORT = 2112  # the vendor's IPU-Machines use it too
PATH = "/metrics"


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """Address of an endpoint of metrics, and access to it.

    Port 0 selects a free port. ``names`` are additional names of ``host`` in the URL of scrapes.
    """

    host: str
    port: int = PORT
    tls: Https | None = None
    token: Token | None = None
    names: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """URL for scrapes."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{PATH}"
