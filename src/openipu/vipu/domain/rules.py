# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the records: pure functions from a state and a request to changes, or a RuleError.

They do not change the state. This module has the entry points. The rules of each kind are in ``agents``,
``clusters``, ``allocations``, ``partitions`` and ``users``; those of many objects at once in ``batch``.

``make_*`` of a kind returns the record of a new object. ``change_*`` returns the record that replaces an
existing one: the identical object when nothing changes. Both raise RuleViolation. The caller checks ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from openipu.vipu.domain.agents import change_agent, make_agent
from openipu.vipu.domain.allocations import change_allocation, make_allocation
from openipu.vipu.domain.capacity import fits, free_summary
from openipu.vipu.domain.certificates import kept_revocations
from openipu.vipu.domain.clusters import change_cluster, make_cluster
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import (
    Code,
    RuleError,
    RuleViolation,
    blocked_by,
    listing,
    missing_or_hidden,
    quoted,
    with_article,
)
from openipu.vipu.domain.model import Agent, Allocation, Change, Cluster, Delete, Kind, Partition, Put, Record, User
from openipu.vipu.domain.partitions import change_partition, make_partition
from openipu.vipu.domain.specs import Outcome, Removal, Spec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.users import change_user, check_admin_stays, make_user
from openipu.vipu.domain.validation import check_id, check_not_tested

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

# kind -> functions that make and change a record
_RULES: dict[Kind, tuple[Callable[..., Record], Callable[..., Record]]] = {
    Kind.AGENT: (make_agent, change_agent),
    Kind.CLUSTER: (make_cluster, change_cluster),
    Kind.ALLOCATION: (make_allocation, change_allocation),
    Kind.PARTITION: (make_partition, change_partition),
    Kind.USER: (make_user, change_user),
}


def create(state: State, spec: Spec, context: Context) -> list[Change]:
    """Return the changes that create an object; an existing id is rejected with ALREADY_EXISTS.

    Ids of partitions are one name space for all callers, so a rejection discloses that an id is in use.
    """
    kind = spec.kind
    try:
        _may_manage(kind, context)
        check_id(kind, spec.id)
        if spec.id in state.table(kind):
            raise RuleViolation(
                Code.ALREADY_EXISTS, f"{with_article(kind)} with this id already exists. Choose another id"
            )
        return [Put(_RULES[kind][0](state, spec, context))]
    except RuleViolation as violation:
        raise _error("create", kind, spec.id, violation) from None


def upsert(state: State, spec: Spec, context: Context) -> tuple[Outcome, list[Change]]:
    """Return the outcome and the changes, if any, that make the object match the spec."""
    kind = spec.kind
    current = state.table(kind).get(spec.id)
    try:
        _may_manage(kind, context)
        make, change = _RULES[kind]
        if current is None:
            check_id(kind, spec.id)
            return Outcome.CREATED, [Put(make(state, spec, context))]
        record = change(state, current, spec, context)
    except RuleViolation as violation:
        raise _error("change" if current else "create", kind, spec.id, violation) from None
    return (Outcome.UNCHANGED, []) if record is current else (Outcome.CHANGED, [Put(record)])


def remove(state: State, removal: Removal, context: Context, recreated: Collection[str] = ()) -> list[Change]:
    """Return the changes that remove an object.

    Without ``force``, dependent objects block the removal, and so does a machine of a partition that is
    down. With it, dependent objects are removed first. A removed allocation is also removed from its
    users, so that they get no access to a later allocation of the same name. Allocations that the caller
    creates again in the same batch (``recreated``) remain with their users. The last administrator is
    removed only with ``force``, and only from a controller without TLS.
    """
    kind, id = removal.kind, removal.id
    remedy = ""
    try:
        _may_manage(kind, context)
        record = state.table(kind).get(id)
        if record is None or (isinstance(record, Partition) and not context.may_use(record.allocation)):
            raise missing_or_hidden(kind, id, context)
        if isinstance(record, Agent | Cluster):
            cluster = record.id if isinstance(record, Cluster) else state.cluster_of.get(id, "")
            check_not_tested(cluster, context)
        if isinstance(record, User):
            if not (removal.force and context.without_users):
                remedy = ", or use force" if context.without_users else ""
                check_admin_stays(state, record, context)
        elif not removal.force:
            remedy = ", or use force"
            _check_unneeded(state, record, context)
    except RuleViolation as violation:
        raise _error("remove", kind, id, violation, remedy) from None
    return _removals(state, record, recreated)


def _check_unneeded(state: State, record: Record, context: Context) -> None:
    """Raise RuleViolation for an object with dependents, or a partition on a machine that is down."""
    if isinstance(record, Agent) and record.id in state.cluster_of:
        raise blocked_by(Kind.CLUSTER, [state.cluster_of[record.id]], "contains it", "contain it")
    if isinstance(record, Cluster) and record.id in state.allocations_in:
        raise blocked_by(Kind.ALLOCATION, state.allocations_in[record.id], "is in it", "are in it")
    if isinstance(record, Allocation) and record.id in state.partitions_in:
        raise blocked_by(Kind.PARTITION, state.partitions_in[record.id], "is in it", "are in it")
    if isinstance(record, Partition) and context.unavailable:
        down = context.unavailable.intersection(agent for agent, _ in state.machines_of(record))
        if down:
            subject, pronoun = (
                (f"agent {listing(down)} is", "it") if len(down) == 1 else (f"agents {listing(down)} are", "them")
            )
            raise RuleViolation(Code.FAILED_PRECONDITION, f"{subject} down. Bring {pronoun} up first")


def _removals(state: State, record: Record, recreated: Collection[str]) -> list[Change]:
    """Return the changes that remove a record and its dependents, dependents first."""
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
    if isinstance(record, User):
        changes += kept_revocations(record)
    return changes


def _may_manage(kind: Kind, context: Context) -> None:
    if kind is not Kind.PARTITION and not context.administrator:
        raise RuleViolation(Code.PERMISSION_DENIED, "only administrators may do this. Use the key of an administrator")


def _error(verb: str, kind: Kind, id: str, violation: RuleViolation, remedy: str = "") -> RuleError:
    return RuleError(violation.code, f"Cannot {verb} {kind} {quoted(id)}: {violation.reason}{remedy}.", violation.needs)
