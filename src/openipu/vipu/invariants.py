# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether records make sense together: what must hold after every change, and in every database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

from openipu.vipu import entities, partitions
from openipu.vipu.checks import Context, Refused, check_id, invalid, shown
from openipu.vipu.model import Agent, Allocation, Cluster, Kind, Partition, Put, Record, State
from openipu.vipu.specs import AllocationSpec, PartitionSpec

_ANYBODY = Context()


def violations(state: State) -> list[str]:
    """A sentence for everything that is wrong with a state; none for a sound one."""
    rebuilt, wrong = rebuild(record for kind in Kind for record in state.table(kind).values())
    if wrong:
        return wrong
    return [
        f"The look-up {field.name!r} does not agree with the records."
        for field in fields(State)
        if getattr(rebuilt, field.name) != getattr(state, field.name)
    ]


def rebuild(records: Iterable[Record]) -> tuple[State, list[str]]:
    """The state that these records make, and a sentence for every one that is left out because it is wrong.

    A record is right when the rules would make it, on top of the records of the kinds below it, from
    a request that leaves nothing open. What an object refers to must be right too.
    """
    state, wrong = State(), []
    for record in sorted(records, key=lambda record: list(Kind).index(record.kind)):
        kind = record.kind
        try:
            check_id(kind, record.id)
            if record.id in state.table(kind):
                raise invalid("there are two of that id")
            if _made_again(state, record) != record:
                raise invalid("the rules would not make it as it is")
        except Refused as refusal:
            wrong.append(f"The {kind} {shown(record.id)} is wrong: {refusal.reason}.")
        else:
            state.apply([Put(record)])
    return state, wrong


def _made_again(state: State, record: Record) -> Record:
    if isinstance(record, Agent):
        return entities.make_agent(state, record, _ANYBODY)
    if isinstance(record, Cluster):
        return entities.make_cluster(state, record, _ANYBODY)
    if isinstance(record, Allocation):
        spec = AllocationSpec(record.id, record.cluster, agents=record.agents)
        return entities.make_allocation(state, spec, _ANYBODY)
    if isinstance(record, Partition):
        return _partition_again(state, record)
    return entities.make_user(state, record, _ANYBODY)


def _partition_again(state: State, record: Partition) -> Partition:
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
    made = partitions.make_partition(state, spec, _ANYBODY)
    if len(record.devices) not in (0, record.size):
        raise invalid(f"it has {record.size} IPUs and {len(record.devices)} devices")
    # The rest of the record is its life, which the rules do not decide.
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
