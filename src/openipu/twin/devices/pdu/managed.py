# SPDX-License-Identifier: GPL-3.0-or-later
"""A PDU as its SNMP agent sees it."""

from __future__ import annotations

import secrets
from collections import Counter
from functools import cached_property

from openipu.twin.devices.pdu.device_objects import variables
from openipu.twin.devices.pdu.pdu import Draft, Pdu, PduFaults
from openipu.twin.devices.snmp.objects import Objects
from openipu.twin.devices.snmp.users import Credentials

_PREFIX = b"\x80\x00\x01\x3e\x04"  # APC, with an id in text format (RFC 3411, SnmpEngineID)
_LONGEST_ID = 27  # characters in text format


class ManagedPdu:
    """PDU for its SNMP agent. Each read takes a sample of the loads first."""

    def __init__(self, pdu: Pdu) -> None:
        self._pdu = pdu
        self.name = pdu.name
        self.traffic = pdu.traffic
        self.credentials: Credentials = pdu.credentials
        self.requests: Counter[str] = Counter()

    @property
    def faults(self) -> PduFaults:
        """Present faults."""
        return self._pdu.faults

    @property
    def listening(self) -> bool:
        """True if the agent receives requests."""
        return not self._pdu.faults.rejecting

    @cached_property
    def engine_id(self) -> bytes:
        """Id of the SNMP engine.

        A PDU without persistent state gets a new id each time; with a reused id, managers would reject its messages
        as old.
        """
        name = self._pdu.serial if self._pdu.persistent else f"{self._pdu.serial}-{secrets.token_hex(4)}"
        return _PREFIX + name.encode()[:_LONGEST_ID]

    def objects(self, *, counter64: bool = True) -> Objects:
        """Return all objects, whose values are those of a new sample."""
        self._pdu.sample()
        return self._objects if counter64 else self._objects_of_v1

    def draft(self) -> Draft:
        """Return a draft with the current settings."""
        return self._pdu.draft()

    def commit(self, draft: Draft) -> None:
        """Save and apply a draft. Raises OSError, with nothing changed."""
        self._pdu.commit(draft)

    def count_boot(self) -> int:
        """Count a start of the agent, and return the number of starts. Raises OSError."""
        return self._pdu.count_boot()

    @cached_property
    def _objects(self) -> Objects:
        return Objects(variables(self._pdu))

    @cached_property
    def _objects_of_v1(self) -> Objects:
        return Objects(variables(self._pdu), counter64=False)
