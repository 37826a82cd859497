# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that an agent reports to controllers, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from openipu.vipu.agent.hardware import PartitionFault
from openipu.vipu.agent_api.limits import MAX_FAULTS_PER_EVENT


class Faults:
    """The last fault of each IPU and partition. When there are too many, the oldest is dropped."""

    def __init__(self) -> None:
        self._faults: dict[tuple[str, int], PartitionFault] = {}
        self._added = asyncio.Event()

    def add(self, fault: PartitionFault) -> None:
        """Add a fault. It replaces an earlier one of the same IPU and partition."""
        key = (fault.partition_id, fault.ipu)
        self._faults.pop(key, None)
        self._faults[key] = fault
        if len(self._faults) > MAX_FAULTS_PER_EVENT:
            del self._faults[next(iter(self._faults))]
        self._added.set()

    def wake(self) -> None:
        """End the wait of ``take`` at once."""
        self._added.set()

    def keep(self, condition: Callable[[str], bool]) -> None:
        """Drop the faults of partitions whose id does not satisfy a condition."""
        self._faults = {key: fault for key, fault in self._faults.items() if condition(key[0])}

    def all(self) -> list[PartitionFault]:
        """Return all faults, oldest first."""
        return list(self._faults.values())

    async def take(self, seconds: float) -> list[PartitionFault]:
        """Return and drop all faults as soon as there is one, or after ``wake``; none after ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                await self._added.wait()
        except TimeoutError:
            return []
        faults = self.all()
        self._faults.clear()
        self._added.clear()
        return faults
