# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion between messages of the admin API and batches of objects and removals. It contains no rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from openipu.shared.vipu.contract import admin
from openipu.vipu.api import convert
from openipu.vipu.api.convert import KIND_NUMBERS, KINDS, Message
from openipu.vipu.domain.batch import Batch, BatchResult
from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.domain.model import Change, Delete, User
from openipu.vipu.domain.specs import Outcome, Removal

_OUTCOMES = {
    Outcome.UNCHANGED: 1,
    Outcome.CREATED: 2,
    Outcome.CHANGED: 3,
    Outcome.REMOVED: 4,
    Outcome.FAILED: 5,
    Outcome.NOT_APPLIED: 6,
}


def length(request: Message) -> int:
    """Return the number of items in an ``ApplyRequest``."""
    specs = (request.agents, request.clusters, request.allocations, request.partitions, request.users)
    return sum(map(len, specs), len(request.removals))


def batch(request: Message, users: Sequence[User]) -> Batch:
    """Return the batch in an ``ApplyRequest``. ``users``: its users with keys. Raises RuleError."""
    return Batch(
        agents=tuple(map(convert.agent_spec, request.agents)),
        clusters=tuple(map(convert.cluster_spec, request.clusters)),
        allocations=tuple(map(convert.allocation_spec, request.allocations)),
        partitions=tuple(map(convert.partition_spec, request.partitions)),
        users=tuple(users),
        removals=tuple(_removal(item, index) for index, item in enumerate(request.removals)),
    )


def _removal(message: Message, index: int) -> Removal:
    kind = KINDS.get(message.kind)
    if kind is None:
        raise RuleError(
            Code.INVALID_ARGUMENT, f"Cannot remove {quoted(message.id)}: removals[{index}] has no valid kind. Set one."
        )
    return Removal(kind, message.id, message.force)


def removal_reply(changes: Iterable[Change]) -> Message:
    """Return a ``RemoveReply`` message with the objects that the changes remove."""
    deleted = [change for change in changes if isinstance(change, Delete)]
    return admin.RemoveReply(
        removed=[admin.RemovedObject(kind=KIND_NUMBERS[each.kind], id=each.id) for each in deleted]
    )


def reply(result: BatchResult, *, applied: bool, access_keys: dict[str, str]) -> Message:
    """Return an ``ApplyReply`` message."""
    return admin.ApplyReply(
        applied=applied,
        results=[
            admin.ItemResult(
                kind=KIND_NUMBERS[item.kind],
                id=item.id,
                outcome=_OUTCOMES[item.outcome],
                error=item.error,
                code=item.code or 0,
            )
            for item in result.results
        ],
        access_keys=access_keys,
    )
