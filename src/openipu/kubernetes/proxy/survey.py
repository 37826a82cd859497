# SPDX-License-Identifier: GPL-3.0-or-later
"""Free IPUs and states of partitions, read from all controllers again and again.

Controllers are asked at the same time, and one that does not respond does not delay the answer for the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import structlog

from openipu.kubernetes.domain.tracking import Phase, Record
from openipu.kubernetes.proxy.controller import ControllerClient
from openipu.kubernetes.proxy.pool import Pool
from openipu.shared.vipu.client import VipuError

_log = structlog.get_logger("openipu.kubernetes.proxy.survey")

_QUERY_SECONDS = 5.0  # for a controller to answer a query


class Survey:
    """Last answers of the controllers."""

    def __init__(self, pool: Pool, records: Iterable[Record], seconds: float = 10.0) -> None:
        """``seconds``: between rounds, and so the longest time until a lost partition is seen."""
        self._pool = pool
        self._records = records
        self._seconds = seconds
        self._free: dict[str, int] = {}
        self._states: dict[str, dict[str, str]] = {}
        self._reserved: dict[str, dict[str, Record]] = {}  # at the beginning of the last round

    @property
    def free(self) -> int:
        """Number of free IPUs of all controllers that responded in the last round."""
        return sum(self._free.values())

    def state(self, record: Record) -> str:
        """Return the last known state of a partition, empty if its controller did not respond.

        A partition that is newer than the last round is missing there, and not removed.
        """
        states = self._states.get(record.controller)
        if states is None or record.id in states:
            return "" if states is None else states[record.id]
        return "REMOVED" if self._reserved[record.controller].get(record.id) is record else ""

    async def fits(self, size: int) -> tuple[list[int], list[str]]:
        """Return how many more partitions of a size fit into each controller, and the failures of others."""
        counts: list[int] = []
        failures: list[str] = []

        async def ask(client: ControllerClient) -> None:
            try:
                async with asyncio.timeout(_QUERY_SECONDS):
                    counts.append(await client.fits(size))
            except VipuError as error:
                failures.append(str(error))
            except TimeoutError:
                failures.append(f"The V-IPU controller {client.controller.address} does not respond.")

        await asyncio.gather(*(ask(each) for each in self._pool))
        return counts, failures or ([] if counts else ["There is no V-IPU controller. Set vipuControllers."])

    async def run(self) -> None:
        """Ask all controllers until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(self._seconds)

    async def read(self) -> None:
        """Ask all controllers once."""
        await asyncio.gather(*(self._read(each) for each in self._pool))
        known = {each.controller.address for each in self._pool}
        for address in self._free.keys() - known:
            self._forget(address)

    async def _read(self, client: ControllerClient) -> None:
        address = client.controller.address
        reserved = {
            each.id: each for each in self._records if each.controller == address and each.phase is Phase.RESERVED
        }
        try:
            async with asyncio.timeout(_QUERY_SECONDS):
                free, states = await asyncio.gather(client.free(), client.states())
        except (VipuError, TimeoutError) as error:
            if address in self._states or address not in self._free:
                _log.warning("controller does not respond", controller=address, error=str(error) or "timeout")
            self._forget(address)
            self._free[address] = 0
            return
        self._free[address], self._states[address], self._reserved[address] = free, states, reserved

    def _forget(self, address: str) -> None:
        self._free.pop(address, None)
        self._states.pop(address, None)
        self._reserved.pop(address, None)
