# SPDX-License-Identifier: GPL-3.0-or-later
"""Free IPUs and states of partitions, read from all controllers again and again.

Controllers are asked at the same time, and one that does not respond does not delay the answer for the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from openipu.kubernetes.domain import visibility
from openipu.kubernetes.domain.controllers import Controller
from openipu.kubernetes.domain.scheduling import Room
from openipu.kubernetes.domain.tracking import Phase, Record
from openipu.kubernetes.domain.visibility import UsableIpus
from openipu.kubernetes.proxy.controller import ControllerClient, Inventory, responding
from openipu.kubernetes.proxy.pool import Pool
from openipu.shared.vipu.client import VipuError

_log = structlog.get_logger("openipu.kubernetes.proxy.survey")

_QUERY_SECONDS = 5.0  # for a controller to answer a query
_SOON_SECONDS = 1.0  # between looks for new reservations


@dataclass(frozen=True, slots=True)
class _Reading:
    """Answer of a controller in the last round."""

    inventory: Inventory
    reserved: Mapping[str, Record]  # at the beginning of the round


class Survey:
    """Last answers of the controllers."""

    def __init__(
        self,
        pool: Pool,
        records: Iterable[Record],
        seconds: float = 10.0,
        keep_seconds: float = 600.0,
        sizes: Sequence[int] = (),
    ) -> None:
        """``seconds``: between rounds, and so the longest time until a lost partition is seen.

        ``keep_seconds``: for which the usable IPUs of a controller that does not respond are kept. ``sizes``: of
        partitions for which ``rooms`` has the numbers that fit.
        """
        self._pool = pool
        self._records = records
        self._seconds = seconds
        self._sizes = sizes
        self._readings: dict[str, _Reading] = {}
        self._usable = UsableIpus(keep_seconds, time.monotonic())
        self._listeners: list[Callable[[], None]] = []

    @property
    def free(self) -> int:
        """Number of free IPUs of all controllers that responded in the last round."""
        return sum(each.inventory.free for each in self._readings.values())

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each round."""
        self._listeners.append(listener)

    def state(self, record: Record) -> str:
        """Return the last known state of a partition, empty if its controller did not respond.

        A partition that is newer than the last round is missing there, and not removed.
        """
        reading = self._readings.get(record.controller)
        if reading is None:
            return ""
        found = reading.inventory.partitions.get(record.id)
        if found is not None:
            return found.state
        return "REMOVED" if reading.reserved.get(record.id) is record else ""

    def usable(self) -> dict[Controller, int | None]:
        """Return controller -> IPUs that Kubernetes may use, None if they are unknown."""
        now = time.monotonic()
        return {each.controller: self._usable.get(each.controller.address, now) for each in self._pool}

    def rooms(self) -> dict[Controller, Room]:
        """Return controller -> its room for partitions, without the reservations since the last round."""
        rooms = {}
        for client in self._pool:
            controller = client.controller
            reading = self._readings.get(controller.address)
            if reading is None:
                rooms[controller] = Room(responds=False)
                continue
            found = reading.inventory
            new = [
                each.size
                for each in self._records_at(controller.address)
                if each.id not in found.partitions and each.id not in reading.reserved
            ]
            rooms[controller] = Room(found.fits, found.free - sum(new))
        return rooms

    async def fits(self, size: int) -> tuple[list[int], list[str]]:
        """Return how many more partitions of a size fit into each controller, and the failures of others."""
        counts: list[int] = []
        failures: list[str] = []

        async def query(client: ControllerClient) -> None:
            try:
                async with asyncio.timeout(_QUERY_SECONDS):
                    counts.append(await client.fits(size))
            except VipuError as error:
                failures.append(str(error))
            except TimeoutError:
                failures.append(f"The V-IPU controller {client.controller.address} does not respond.")

        await asyncio.gather(*(query(each) for each in responding(self._pool)))
        return counts, failures or ([] if counts else ["There is no V-IPU controller. Set vipuControllers."])

    async def run(self) -> None:
        """Ask all controllers until cancelled. If ``rooms`` is in use, reservations start a new round soon."""
        while True:
            due, seen = time.monotonic() + self._seconds, set(self._records)
            await self.read()
            while (left := due - time.monotonic()) > 0 and not (self._sizes and seen != set(self._records)):
                await asyncio.sleep(min(left, _SOON_SECONDS))

    async def read(self) -> None:
        """Ask all controllers once."""
        await asyncio.gather(*(self._read(each) for each in self._pool))
        known = {each.controller.address for each in self._pool}
        for address in self._readings.keys() - known:
            del self._readings[address]
        for each in self._listeners:
            each()

    async def _read(self, client: ControllerClient) -> None:
        address = client.controller.address
        before = self._records_at(address)
        try:
            async with asyncio.timeout(_QUERY_SECONDS):
                inventory = await client.inventory(self._sizes)
        except (VipuError, TimeoutError) as error:
            if client.responds:
                _log.warning("controller does not respond", controller=address, error=str(error) or "timeout")
            client.responds = False
            self._readings.pop(address, None)
            return
        if not client.responds:
            _log.info("controller responds again", controller=address)
            client.responds = True
        reserved = {each.id: each for each in before if each.phase is Phase.RESERVED}
        self._readings[address] = _Reading(inventory, reserved)
        records = [*before, *self._records_at(address)]
        usable = visibility.usable_ipus(inventory.total, inventory.partitions, records)
        self._usable.update(address, usable, time.monotonic())

    def _records_at(self, address: str) -> list[Record]:
        return [each for each in self._records if each.controller == address]
