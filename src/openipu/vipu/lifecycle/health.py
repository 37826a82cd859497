# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions whose machines fail, do not respond, or respond again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.model import Operation, Partition
from openipu.vipu.lifecycle.recovery import Recovery
from openipu.vipu.lifecycle.reported import ReportedShares
from openipu.vipu.lifecycle.result_writer import ResultWriter
from openipu.vipu.storage.interface import Records

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class PartitionHealth:
    """Records of running partitions, as the reports of their machines require. Use it in the event loop only."""

    def __init__(
        self,
        records: Records,
        writer: ResultWriter,
        recovery: Recovery,
        reported: ReportedShares,
        agents_of: Callable[[str], Sequence[str]],
    ) -> None:
        """``agents_of`` returns the agents of a partition."""
        self._records = records
        self._writer = writer
        self._recovery = recovery
        self._reported = reported
        self._agents_of = agents_of

    def lost(self, id: str, error: str) -> None:
        """Record that a machine no longer holds its share, or that an IPU of it failed."""
        is_new = self._writer.put_loss(
            id, error, lambda current: partition_state.lost(current, error, self._recovery.now(current))
        )
        if is_new and self._is_idle(id):
            _log.warning("partition lost", partition=id, reason=error)

    def unreachable(self, id: str, error: str) -> None:
        """Record that a machine does not respond."""
        if self._is_idle(id):
            _log.warning("partition unreachable", partition=id, reason=error)
        self._writer.put(id, lambda current: partition_state.unreachable(current, error, self._recovery.now(current)))

    def regain(self, id: str) -> None:
        """Make an unreachable partition active again, without a reset, when all of its agents hold their shares."""
        record = self._records.state.partitions.get(id)
        if record is None or record.operation is not Operation.UNREACHABLE:
            return
        agents = self._agents_of(id)
        if agents and all(self._reported.holds(agent_id, id) for agent_id in agents):
            _log.info("partition regained", partition=id)
            self._writer.put(id, lambda current: partition_state.regained(current) if current is record else current)

    def _is_idle(self, id: str) -> bool:
        record: Partition | None = self._records.state.partitions.get(id)
        return record is not None and record.operation is Operation.IDLE
