# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares that agents report, compared with those that the records require."""

from __future__ import annotations

from openipu.vipu.fleet.agent_messages import AgentEvent, HeldShare, Revision
from openipu.vipu.storage.interface import Records


class ReportedShares:
    """Last events of the agents that are up. Use it in the event loop only."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._events: dict[str, AgentEvent] = {}

    def put(self, agent_id: str, event: AgentEvent) -> set[str]:
        """Replace the event of an agent. Return the partitions with a share as the records require it."""
        self._events[agent_id] = event
        recorded = self.recorded(agent_id)
        return {share.partition_id for share in event.shares if share.ipus == recorded.get(share.partition_id)}

    def drop(self, agent_id: str) -> None:
        """Drop the event of an agent that is not up any more."""
        self._events.pop(agent_id, None)

    def recorded(self, agent_id: str) -> dict[str, frozenset[int]]:
        """Return partition -> its IPUs on the machine of an agent, as the records require."""
        shares: dict[str, set[int]] = {}
        for ipu, id in dict(self._records.state.holders.get(agent_id, ())).items():
            shares.setdefault(id, set()).add(ipu)
        return {id: frozenset(ipus) for id, ipus in shares.items()}

    def holds(self, agent_id: str, id: str) -> bool:
        """Return whether an agent that is up holds the share of a partition as the records require it."""
        ipus = self.recorded(agent_id).get(id)
        return any(share.partition_id == id and share.ipus == ipus for share in self._shares(agent_id))

    def unknown(self, agent_id: str) -> list[HeldShare]:
        """Return the shares of partitions that have no IPUs on this machine in the records."""
        recorded = self.recorded(agent_id)
        return [share for share in self._shares(agent_id) if share.partition_id not in recorded]

    def is_current(self, agent_id: str, state: Revision) -> bool:
        """Return whether the event of an agent has this boot id and revision."""
        event = self._events.get(agent_id)
        return event is not None and (event.boot_id, event.revision) == (state.boot_id, state.revision)

    def is_free(self, agent_id: str, id: str) -> bool:
        """Return whether an agent that is up has released a partition, according to its event."""
        return agent_id in self._events and all(share.partition_id != id for share in self._shares(agent_id))

    def _shares(self, agent_id: str) -> tuple[HeldShare, ...]:
        event = self._events.get(agent_id)
        return event.shares if event else ()
