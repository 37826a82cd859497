# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch as its SNMP agent sees it: credentials and engine."""

from __future__ import annotations

from collections import Counter
from typing import Any, NoReturn

from openipu.twin.devices.eos.config.snmp import credentials
from openipu.twin.devices.eos.reach import has_address
from openipu.twin.devices.eos.snmp_objects import SwitchObjects
from openipu.twin.devices.eos.switch import Switch, SwitchFaults
from openipu.twin.devices.snmp.errors import SnmpError, Status
from openipu.twin.devices.snmp.objects import Objects
from openipu.twin.devices.snmp.traffic import Traffic
from openipu.twin.devices.snmp.users import Credentials


class ManagedSwitch:
    """Switch for its SNMP agent, with the credentials of the running configuration.

    Its engine id follows from the MAC. ``snmp-server engineID`` has no effect.
    """

    def __init__(self, switch: Switch) -> None:
        self._switch = switch
        self.name = switch.name
        self._objects = SwitchObjects(switch)
        self.traffic = Traffic()
        self.requests: Counter[str] = switch.snmp_requests

    @property
    def faults(self) -> SwitchFaults:
        """Present faults."""
        return self._switch.faults

    @property
    def listening(self) -> bool:
        """True if the agent receives requests. EOS starts it with the first user or community."""
        configured = self.credentials.users or self.credentials.communities
        reachable = has_address(self._switch.running, self._switch.management_address)
        return bool(configured) and reachable and not self._switch.faults.rejecting

    @property
    def credentials(self) -> Credentials:
        """Users and communities of the running configuration."""
        return credentials(self._switch.running)

    @property
    def engine_id(self) -> bytes:
        """Id of the SNMP engine."""
        return bytes.fromhex(self._switch.engine)

    def objects(self, *, counter64: bool = True) -> Objects:
        """Return the present objects."""
        return self._objects.present(counter64=counter64)

    def draft(self) -> NoReturn:
        """Reject a write: no user may write."""
        raise SnmpError(Status.NO_ACCESS, 1)

    def commit(self, draft: Any) -> NoReturn:
        """Reject a write: no user may write."""
        raise SnmpError(Status.NO_ACCESS, 1)

    def count_boot(self) -> int:
        """Count a start of the agent, and return the number of starts. Raises OSError."""
        return self._switch.count_boot()
