# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion between messages of ``Watch`` and views and events."""

from __future__ import annotations

from collections.abc import Iterable

from openipu.shared.vipu.contract import admin
from openipu.shared.vipu.object_rules import ID_RULE, is_valid_id
from openipu.vipu.api import convert
from openipu.vipu.api.convert import KIND_NUMBERS, KINDS, Message
from openipu.vipu.api.replies import allocation_reply
from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.domain.history import Event
from openipu.vipu.domain.model import Agent, Allocation, Cluster, Kind, Partition, User
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.status import AgentState, AgentStatus

MAX_IDS = 100  # and kinds, of one request

_UNKNOWN = AgentStatus(AgentState.UNKNOWN)


def kinds(request: Message, served: frozenset[Kind]) -> frozenset[Kind]:
    """Return the kinds in a ``WatchRequest``; ``served`` are those of the service. Raises RuleError."""
    for name, items in (("ids", request.ids), ("kinds", request.kinds)):
        if len(items) > MAX_IDS:
            raise _invalid(f"the request has {len(items)} {name}; at most {MAX_IDS} are allowed")
    # No object has an invalid id, and a stream would keep a long one in memory.
    for id in filter(None, (request.allocation_id, *request.ids)):
        if not is_valid_id(id):
            raise _invalid(f"the id {quoted(id)} must have {ID_RULE}")
    chosen = set()
    for number in request.kinds:
        kind = KINDS.get(number)
        if kind not in served:
            names = ", ".join(kind for kind in Kind if kind in served)
            raise _invalid(f"kind {kind or number} is not available here. Choose from {names}")
        chosen.add(kind)
    return frozenset(chosen) or served


def prepare(state: State, event: Event) -> Event | Message:
    """Return an event whose message no longer depends on ``state``; those of partitions are built when they are sent.

    Call it while the state cannot change. There can be many partitions, and their records are immutable.
    """
    return event if event.record is None or isinstance(event.record, Partition | User) else _message(event, state)


def reply(events: Iterable[Event | Message], revision: int) -> Message:
    """Return a ``WatchReply``."""
    messages = [_message(event, None) if isinstance(event, Event) else event for event in events]
    return admin.WatchReply(revision=revision, events=messages)


def _message(event: Event, state: State | None) -> Message:
    (kind, id), record = event.key, event.record
    message = admin.Event(
        type=admin.Event.DELETE if record is None else admin.Event.PUT,
        kind=KIND_NUMBERS[kind],
        id=id,
        revision=event.revision,
    )
    if isinstance(record, Partition):
        message.partition.partition.CopyFrom(convert.partition_message(record))
        message.partition.status.CopyFrom(convert.status_message(record))
        message.partition.options.CopyFrom(convert.partition_options_message(record))
    elif isinstance(record, User):
        message.user.CopyFrom(convert.user_message(record))
    elif state is not None:
        if isinstance(record, Agent):
            places = state.cluster_of.get(id, ""), state.allocation_of.get(id, "")
            message.agent.CopyFrom(convert.agent_message(record, _UNKNOWN, *places, facts=False))
        elif isinstance(record, Cluster):
            message.cluster.CopyFrom(convert.cluster_message(record, sorted(state.allocations_in.get(id, ()))))
        elif isinstance(record, Allocation):
            message.allocation.CopyFrom(allocation_reply(state, record))
    return message


def _invalid(reason: str) -> RuleError:
    return RuleError(Code.INVALID_ARGUMENT, f"Cannot watch: {reason}.")
