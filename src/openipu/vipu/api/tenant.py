# SPDX-License-Identifier: GPL-3.0-or-later
"""The API for tenants to read their allocations."""

from __future__ import annotations

from openipu.shared.vipu.contract import admin
from openipu.vipu.api import convert as messages
from openipu.vipu.api.auth import Caller
from openipu.vipu.api.convert import Message
from openipu.vipu.api.methods import non_blocking
from openipu.vipu.api.replies import allocation_reply, not_found
from openipu.vipu.api.reply_stream import ReplyStream
from openipu.vipu.api.watch import TENANT_KINDS, Watches
from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleError, missing_or_hidden, quoted
from openipu.vipu.domain.model import Change, Kind, sorted_by_id
from openipu.vipu.domain.specs import PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.lifecycle.interface import Lifecycle
from openipu.vipu.storage.writer import RecordWriter

_MAX_SIZES = 64  # of one CountFits; sizes are powers of two


class TenantService:
    """Allocations, their free IPUs, and partition options, for the users of an allocation."""

    def __init__(self, controller: RecordWriter, lifecycle: Lifecycle, watches: Watches) -> None:
        self._controller = controller
        self._lifecycle = lifecycle
        self._watches = watches

    @non_blocking
    def Watch(self, request: Message, caller: Caller, stream: ReplyStream) -> None:
        """Start a stream of changes of the allocations that the caller may use, and of their partitions."""
        self._watches.watch(request, caller, stream, TENANT_KINDS)

    def GetAllocation(self, request: Message, caller: Caller) -> Message:
        """Return an allocation."""
        context = Context(allowed=caller.allowed)
        with self._controller.reading() as state:
            allocation = state.allocations.get(request.id)
            if allocation is None or not context.may_use(allocation.id):
                raise not_found(Kind.ALLOCATION, request.id, context)
            return admin.GetAllocationReply(allocation=allocation_reply(state, allocation))

    def ListAllocations(self, request: Message, caller: Caller) -> Message:
        """Return all allocations that the caller may use, sorted by id."""
        context = Context(allowed=caller.allowed)
        with self._controller.reading() as state:
            found = [
                allocation_reply(state, each) for each in sorted_by_id(state.allocations) if context.may_use(each.id)
            ]
        return admin.ListAllocationsReply(allocations=found)

    def CountFits(self, request: Message, caller: Caller) -> Message:
        """Return how many more partitions of each size fit now."""
        context = Context(self._lifecycle.unavailable(), caller.allowed, quarantined=self._lifecycle.quarantined())
        sizes = list(dict.fromkeys(request.sizes))
        if len(sizes) > _MAX_SIZES:
            raise RuleError(
                Code.INVALID_ARGUMENT,
                f"Cannot count partitions of {len(sizes)} sizes at once: at most {_MAX_SIZES} are allowed.",
            )
        with self._controller.reading() as state:
            counts = [rules.fits(state, request.allocation_id, size, context) for size in sizes]
        return admin.CountFitsReply(
            fits=[admin.CountFitsReply.Fit(size=size, count=count) for size, count in zip(sizes, counts, strict=True)]
        )

    def ListPartitionOptions(self, request: Message, caller: Caller) -> Message:
        """Return the partition options that are not in the public API. Partitions of other tenants are omitted."""
        context = Context(allowed=caller.allowed)
        partitions = self._controller.state.partitions
        ids = list(dict.fromkeys(request.partition_ids)) or sorted(partitions)
        found = [record for id in ids if (record := partitions.get(id)) and context.may_use(record.allocation)]
        return admin.ListPartitionOptionsReply(partitions=map(messages.partition_options_message, found))

    def SetPartitionOptions(self, request: Message, caller: Caller) -> Message:
        """Change partition options without a reset."""
        id = request.partition_id
        spec = PartitionSpec(id, 0, disable_auto_reset=request.disable_auto_reset, relocatable=request.relocatable)

        def command(state: State) -> tuple[list[Change], bool]:
            context = Context(self._lifecycle.unavailable(), caller.allowed)
            record = state.partitions.get(id)
            if record is None or not context.may_use(record.allocation):
                reason = missing_or_hidden(Kind.PARTITION, id, context).reason
                raise RuleError(Code.NOT_FOUND, f"Cannot change partition {quoted(id)}: {reason}.")
            changes = rules.upsert(state, spec, context)[1]
            return changes, bool(changes)

        return admin.SetPartitionOptionsReply(changed=self._controller.submit(command).result())
