# SPDX-License-Identifier: GPL-3.0-or-later
"""Automatic resets and moves of failed partitions, as soon as they can succeed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.model import Partition
from openipu.vipu.fleet.pauses import Pauses
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.fleet.supervisor import Supervisor
from openipu.vipu.lifecycle.relocator import Relocator
from openipu.vipu.lifecycle.reset_clock import ResetClock
from openipu.vipu.lifecycle.result_writer import ResultWriter
from openipu.vipu.storage.interface import Records


class Recovery:
    """Recovery of partitions, which may be delayed. Use it in the event loop only."""

    def __init__(
        self,
        records: Records,
        writer: ResultWriter,
        supervisor: Supervisor,
        quarantined: Callable[[], Mapping[str, int]],
        agents_of: Callable[[str], Sequence[str]],
        relocation_delay: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """``quarantined`` returns the IPUs in quarantine, in any thread; ``agents_of`` the agents of a partition.

        ``relocation_delay``: seconds that an agent must be Down before relocatable partitions move. They start again
        after a pause of the controller, because the agent may have returned meanwhile.
        """
        self._records = records
        self._writer = writer
        self._supervisor = supervisor
        self._agents_of = agents_of
        self._relocation_delay = relocation_delay
        self._loop = loop
        self._clock = ResetClock()
        self._pauses = Pauses(loop)
        self._relocator = Relocator(records, self._loop, lambda: supervisor.unavailable, quarantined)
        self._resets: dict[str, asyncio.TimerHandle] = {}
        self._moves: dict[str, asyncio.TimerHandle] = {}

    def now(self, record: Partition) -> float:
        """Return the time to compare with the last automatic reset of a partition."""
        return self._clock.now(record)

    def recover(self, id: str) -> None:
        """Reset or move a failed partition automatically, as soon as that can succeed."""
        self._relocator.discard(id)
        if timer := self._moves.pop(id, None):
            timer.cancel()
        record = self._records.state.partitions.get(id)
        if record is None or id in self._resets:
            return
        agents = self._agents_of(id)
        up = bool(agents) and all(self._supervisor.status(agent_id).state is AgentState.UP for agent_id in agents)
        if up and partition_state.may_auto_reset(record):
            delay = partition_state.auto_reset_due(record) - self._clock.now(record)
            if delay > 0:
                self._resets[id] = self._loop.call_later(delay, self._recover_now, id)
            else:
                now = time.time()
                self._writer.put(
                    id, lambda current: partition_state.auto_reset(current, now) if current is record else current
                )
        elif not up and partition_state.may_relocate(record):
            self._relocate(record, agents)

    def cancel(self, id: str) -> None:
        """Cancel the recovery of a partition whose record has changed."""
        self._relocator.discard(id)
        for timers in (self._resets, self._moves):
            if timer := timers.pop(id, None):
                timer.cancel()

    def drop(self, id: str) -> None:
        """Drop a deleted partition."""
        self.cancel(id)
        self._clock.drop(id)

    def search(self) -> None:
        """Search for IPUs for the partitions that wait to be moved, because some may have become free."""
        self._relocator.search()

    def _relocate(self, record: Partition, agents: Sequence[str]) -> None:
        """Move a partition once one of its agents has been down for the relocation delay."""
        connections = map(self._supervisor.connections.get, agents)
        down = [each.down_since for each in connections if each and each.status.state is AgentState.DOWN]
        if not down:
            return
        due = max(min(down), self._pauses.last_end()) + self._relocation_delay
        if due > self._loop.time():
            self._moves[record.id] = self._loop.call_at(due, self.recover, record.id)
            return
        self._relocator.add(record)

    def _recover_now(self, id: str) -> None:
        self._resets.pop(id, None)
        self.recover(id)
