# SPDX-License-Identifier: GPL-3.0-or-later
"""Replies and errors that several services return."""

from __future__ import annotations

from openipu.vipu.api import convert
from openipu.vipu.api.convert import Message
from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleError, missing_or_hidden, quoted
from openipu.vipu.domain.model import Allocation, Kind
from openipu.vipu.domain.state import State


def allocation_reply(state: State, allocation: Allocation) -> Message:
    """Return an ``Allocation`` message with its partitions and free machines."""
    free_ipus, free_machines, _ = rules.free_summary(state, allocation.id)
    partitions = sorted(state.partitions_in.get(allocation.id, ()))
    return convert.allocation_message(allocation, partitions, free_ipus, free_machines)


def not_found(kind: Kind, id: str, context: Context | None = None) -> RuleError:
    """Return the error for an object that does not exist or is not visible in this context."""
    reason = missing_or_hidden(kind, id, context or Context()).reason
    return RuleError(Code.NOT_FOUND, f"Cannot get {kind} {quoted(id)}: {reason}.")
