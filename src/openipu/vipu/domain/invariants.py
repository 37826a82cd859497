# SPDX-License-Identifier: GPL-3.0-or-later
"""Consistency of the records, which holds after every change and in every database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

from openipu.vipu.domain.agents import make_agent
from openipu.vipu.domain.allocations import make_allocation
from openipu.vipu.domain.clusters import make_cluster
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import RuleViolation, invalid, quoted
from openipu.vipu.domain.model import Agent, Allocation, Cluster, Kind, Partition, Put, Record, RevokedKey
from openipu.vipu.domain.partitions import make_partition
from openipu.vipu.domain.specs import AllocationSpec, PartitionSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.users import make_user
from openipu.vipu.domain.validation import check_id

_UNRESTRICTED = Context()
_PLACED = Context(is_placed=True)


def violations(state: State) -> list[str]:
    """Return a text for each inconsistency of a state; none for a consistent one. Only tests call it."""
    rebuilt, wrong = rebuild(record for kind in Kind for record in state.table(kind).values())
    if wrong:
        return wrong
    return [
        f"The index {field.name!r} does not match the records."
        for field in fields(State)
        if getattr(rebuilt, field.name) != getattr(state, field.name)
    ]


def rebuild(records: Iterable[Record]) -> tuple[State, list[str]]:
    """Return the state of these records, and a message for each record that is omitted as invalid.

    A record is valid when the rules would create it from a fully specified request, on top of the
    records of the kinds below it. The objects that it refers to must be valid too.
    """
    state, wrong = State(), []
    order = {kind: place for place, kind in enumerate(Kind)}
    for record in sorted(records, key=lambda record: order[record.kind]):
        kind = record.kind
        try:
            if not isinstance(record, RevokedKey):
                check_id(kind, record.id)
            if record.id in state.table(kind):
                raise invalid("another record has the same id")
            if _recreate(state, record) != record:
                raise invalid("the rules would create it differently")
        except RuleViolation as violation:
            wrong.append(f"The {kind} {quoted(record.id)} is invalid: {violation.reason}.")
        else:
            state.apply([Put(record)])
    return state, wrong


def _recreate(state: State, record: Record) -> Record:
    if isinstance(record, Agent):
        return make_agent(state, record, _UNRESTRICTED)
    if isinstance(record, Cluster):
        return make_cluster(state, record, _UNRESTRICTED)
    if isinstance(record, Allocation):
        spec = AllocationSpec(record.id, record.cluster, agents=record.agents)
        return make_allocation(state, spec, _UNRESTRICTED)
    if isinstance(record, Partition):
        return _recreate_partition(state, record)
    if isinstance(record, RevokedKey):
        if record.id in state.certificate_users:
            raise invalid(f"user {quoted(state.certificate_users[record.id])} has it")
        return record
    return make_user(state, record, _UNRESTRICTED)


def _recreate_partition(state: State, record: Partition) -> Partition:
    if not record.ipus:
        raise invalid("it has no IPUs")
    spec = PartitionSpec(
        id=record.id,
        size=record.size,
        allocation=record.allocation,
        cluster=record.cluster,
        routing=record.routing,
        num_segments=record.num_segments,
        gw_routing=record.gw_routing,
        sync_type=record.sync_type,
        num_gcds=record.num_gcds,
        num_replicas=record.num_replicas,
        reconfigurable=record.reconfigurable,
        ipus=record.ipus,
    )
    made = make_partition(state, spec, _PLACED)
    if len(record.devices) not in (0, record.size):
        raise invalid(f"it has {record.size} IPUs but {len(record.devices)} devices")
    # The rules do not decide the other fields: they describe the progress of the partition.
    return replace(
        made,
        ready=record.ready,
        operation=record.operation,
        disable_auto_reset=record.disable_auto_reset,
        relocatable=record.relocatable,
        errors=record.errors,
        max_retries=record.max_retries,
        retries=record.retries,
        last_auto_reset=record.last_auto_reset,
        devices=record.devices,
    )
