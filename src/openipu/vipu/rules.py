# SPDX-License-Identifier: GPL-3.0-or-later
"""What may become of the records: pure functions from a state and a wish to changes, or a RuleError.

None of them changes the state. The entry points are here, the rules of each kind in ``entities``,
``partitions`` and ``explicit``, those of many objects at once in ``batch``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from openipu.vipu import entities, partitions
from openipu.vipu.capacity import fits, free_summary
from openipu.vipu.checks import (
    Code,
    Context,
    Refused,
    RuleError,
    a_kind,
    check_id,
    check_not_tested,
    in_the_way,
    listing,
    not_there,
    shown,
)
from openipu.vipu.model import Agent, Allocation, Change, Cluster, Delete, Kind, Partition, Put, Record, State, User
from openipu.vipu.specs import Outcome, Removal, Spec

__all__ = [
    "Code",
    "Context",
    "RuleError",
    "create",
    "fits",
    "free_summary",
    "remove",
    "upsert",
]

# How to make a record of a kind, and how to change one.
_RULES: dict[Kind, tuple[Callable[..., Record], Callable[..., Record]]] = {
    Kind.AGENT: (entities.make_agent, entities.change_agent),
    Kind.CLUSTER: (entities.make_cluster, entities.change_cluster),
    Kind.ALLOCATION: (entities.make_allocation, entities.change_allocation),
    Kind.PARTITION: (partitions.make_partition, partitions.change_partition),
    Kind.USER: (entities.make_user, entities.change_user),
}


def create(state: State, spec: Spec, context: Context) -> list[Change]:
    """The changes that make a new object; an existing id is refused with ALREADY_EXISTS.

    Ids of partitions are one name space for all callers: that an id is taken is no secret.
    """
    kind = spec.kind
    try:
        _may_manage(kind, context)
        check_id(kind, spec.id)
        if spec.id in state.table(kind):
            raise Refused(Code.ALREADY_EXISTS, f"there is {a_kind(kind)} of that id already")
        return [Put(_RULES[kind][0](state, spec, context))]
    except Refused as refusal:
        raise _error("create", kind, spec.id, refusal) from None


def upsert(state: State, spec: Spec, context: Context) -> tuple[Outcome, list[Change]]:
    """The changes, if any, after which the object is as the spec says, and what they amount to."""
    kind = spec.kind
    current = state.table(kind).get(spec.id)
    try:
        _may_manage(kind, context)
        make, change = _RULES[kind]
        if current is None:
            check_id(kind, spec.id)
            return Outcome.CREATED, [Put(make(state, spec, context))]
        record = change(state, current, spec, context)
    except Refused as refusal:
        raise _error("change" if current else "create", kind, spec.id, refusal) from None
    return (Outcome.UNCHANGED, []) if record is current else (Outcome.CHANGED, [Put(record)])


def remove(state: State, removal: Removal, context: Context, recreated: Collection[str] = ()) -> list[Change]:
    """The changes that remove an object.

    Without ``force`` whatever depends on it is in the way, and so is a machine of a partition that is
    down and cannot be told. With it, dependents go first. A removed allocation leaves the rights of
    its users too, so that whoever is given the name next does not meet them; allocations that the
    caller makes again at once (``recreated``) stay in them. The last administrator stays in any case.
    """
    kind, id = removal.kind, removal.id
    remedy = ""
    try:
        _may_manage(kind, context)
        record = state.table(kind).get(id)
        if record is None or (isinstance(record, Partition) and not context.may_use(record.allocation)):
            raise not_there(kind, id, context)
        if isinstance(record, Agent | Cluster):
            cluster = record.id if isinstance(record, Cluster) else state.cluster_of.get(id, "")
            check_not_tested(cluster, context)
        if isinstance(record, User):
            entities.check_admin_stays(state, record, context)
        elif not removal.force:
            remedy = ", or use force"
            _check_unneeded(state, record, context)
    except Refused as refusal:
        raise _error("remove", kind, id, refusal, remedy) from None
    return _removals(state, record, recreated)


def _check_unneeded(state: State, record: Record, context: Context) -> None:
    """Refuse to remove what something depends on, or what a machine could not be told of."""
    if isinstance(record, Agent) and record.id in state.cluster_of:
        raise in_the_way(Kind.CLUSTER, [state.cluster_of[record.id]], "has it", "have it")
    if isinstance(record, Cluster) and record.id in state.allocations_in:
        raise in_the_way(Kind.ALLOCATION, state.allocations_in[record.id], "is in it", "are in it")
    if isinstance(record, Allocation) and record.id in state.partitions_in:
        raise in_the_way(Kind.PARTITION, state.partitions_in[record.id], "is in it", "are in it")
    if isinstance(record, Partition) and context.unavailable:
        down = context.unavailable.intersection(agent for agent, _ in state.machines_of(record))
        if down:
            which = f"agent {listing(down)} is" if len(down) == 1 else f"agents {listing(down)} are"
            raise Refused(Code.FAILED_PRECONDITION, f"{which} down and cannot be told; bring them up first")


def _removals(state: State, record: Record, recreated: Collection[str]) -> list[Change]:
    """The record and all that depends on it, dependents first."""
    clusters: list[str] = []
    if isinstance(record, Agent):
        clusters = [state.cluster_of[record.id]] if record.id in state.cluster_of else []
    elif isinstance(record, Cluster):
        clusters = [record.id]
    allocations = [id for cluster in clusters for id in sorted(state.allocations_in.get(cluster, ()))]
    if isinstance(record, Allocation):
        allocations = [record.id]
    partitions = [id for allocation in allocations for id in sorted(state.partitions_in.get(allocation, ()))]
    changes: list[Change] = [Delete(Kind.PARTITION, id) for id in partitions]
    revoked = set(allocations).difference(recreated)
    for id in sorted({id for allocation in revoked for id in state.users_of.get(allocation, ())}):
        user = state.users[id]
        changes.append(Put(replace(user, allocations=tuple(a for a in user.allocations if a not in revoked))))
    changes += [Delete(Kind.ALLOCATION, id) for id in allocations]
    changes += [Delete(Kind.CLUSTER, id) for id in clusters]
    if not isinstance(record, Allocation | Cluster):
        changes.append(Delete(record.kind, record.id))
    return changes


def _may_manage(kind: Kind, context: Context) -> None:
    if kind is not Kind.PARTITION and context.allowed is not None:
        raise Refused(Code.PERMISSION_DENIED, "only an administrator may do that")


def _error(verb: str, kind: Kind, id: str, refusal: Refused, remedy: str = "") -> RuleError:
    return RuleError(refusal.code, f"Cannot {verb} {kind} {shown(id)}: {refusal.reason}{remedy}.", refusal.needs)
