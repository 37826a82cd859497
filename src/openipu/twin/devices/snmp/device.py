# SPDX-License-Identifier: GPL-3.0-or-later
"""Interface of a device for its SNMP agent."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from openipu.twin.devices.snmp.objects import Objects
from openipu.twin.devices.snmp.traffic import Traffic
from openipu.twin.devices.snmp.users import Credentials


class Faults(Protocol):
    """Faults of a device that its agent shows."""

    @property
    def slow(self) -> float:
        """Delay of each response in seconds."""

    @property
    def wrong_credentials(self) -> bool:
        """True if all users and communities are rejected."""


class ManagedObjects(Protocol):
    """Objects of a device."""

    @property
    def name(self) -> str:
        """Name of the device, for logs."""

    def objects(self, *, counter64: bool = True) -> Objects:
        """Return the present objects; without ``counter64``, without those of this type."""

    def draft(self) -> Any:
        """Return a draft for writes, which start with ``commit``."""

    def commit(self, draft: Any) -> None:
        """Save and apply a draft. Raises OSError, with nothing changed."""


class ManagedDevice(ManagedObjects, Protocol):
    """A device with an agent. ``requests`` counts the accepted requests: get, get_next, get_bulk, set."""

    requests: Counter[str]
    traffic: Traffic

    @property
    def faults(self) -> Faults:
        """Present faults."""

    @property
    def listening(self) -> bool:
        """True if the agent receives requests; otherwise it drops them."""

    @property
    def credentials(self) -> Credentials:
        """Accepted users and communities."""

    @property
    def engine_id(self) -> bytes:
        """Id of the SNMP engine."""

    def count_boot(self) -> int:
        """Count a start of the agent, and return the number of starts. Raises OSError."""
