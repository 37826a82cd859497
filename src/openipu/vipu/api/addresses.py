# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of the controller. Commands import them without the services."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Address to listen on. Port 0 selects a free port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address in the form that gRPC expects."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
