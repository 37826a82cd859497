# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares that agents report, compared with those that the records require.

A share may have the id of a recorded partition and belong to another one. Then the record comes from a restored backup,
and the partition was removed and created again since then. So a share that is older than the restore does not belong to
the record yet. It does after all agents of the partition have reported it as recorded, at a time without an operation.
Until then nothing resets or releases it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from openipu.vipu.domain.model import Operation
from openipu.vipu.fleet.agent_messages import AgentEvent, HeldShare, Revision
from openipu.vipu.lifecycle.quarantine import may_be_other
from openipu.vipu.storage.interface import Records


class ReportedShares:
    """Last events of the agents that are up. Use it in the event loop only.

    Arguments ``recorded`` are results of the method of this name.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._events: dict[str, AgentEvent] = {}
        self._confirmed: dict[str, frozenset[str]] = {}  # partition -> agents whose shares belong to the record

    def put(self, agent_id: str, event: AgentEvent, recorded: Mapping[str, frozenset[int]]) -> set[str]:
        """Replace the event of an agent. Return the partitions with a share as the records require it."""
        self._events[agent_id] = event
        return {share.partition_id for share in event.shares if share.ipus == recorded.get(share.partition_id)}

    def knows(self, agent_id: str) -> bool:
        """Return whether an agent is up and has reported its shares."""
        return agent_id in self._events

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

    def confirm(self, id: str, agents: Sequence[str]) -> None:
        """Assign the shares of a partition to its record when all of its agents hold them, without an operation."""
        if self._is_settled(id) and agents and all(self.holds(agent_id, id) for agent_id in agents):
            self._confirmed[id] = frozenset(agents)

    def drop_partition(self, id: str) -> None:
        """Drop a deleted partition."""
        self._confirmed.pop(id, None)

    def is_other(self, agent_id: str, id: str) -> bool:
        """Return whether an agent holds a share with the id of a partition that may belong to another one."""
        return any(share.partition_id == id and self._may_be_other(agent_id, share) for share in self._shares(agent_id))

    def unknown(self, agent_id: str, recorded: Mapping[str, frozenset[int]]) -> list[HeldShare]:
        """Return the shares that the records do not explain.

        Their partitions have no IPUs on this machine in the records. Or they may belong to other partitions, and the
        record requires a change of them.
        """
        return [share for share in self._shares(agent_id) if not self._is_explained(agent_id, share, recorded)]

    def _is_explained(self, agent_id: str, share: HeldShare, recorded: Mapping[str, frozenset[int]]) -> bool:
        id = share.partition_id
        if id not in recorded:
            return False
        if not self._may_be_other(agent_id, share):
            return True
        return share.ipus == recorded[id] and self._is_settled(id)

    def _is_settled(self, id: str) -> bool:
        """Return whether the record of a partition requires no change of its shares."""
        record = self._records.state.partitions.get(id)
        return record is not None and record.operation in (Operation.IDLE, Operation.UNREACHABLE)

    def _may_be_other(self, agent_id: str, share: HeldShare) -> bool:
        if agent_id in self._confirmed.get(share.partition_id, ()):
            return False
        return may_be_other(share, self._records.deployment)

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
