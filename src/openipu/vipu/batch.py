# SPDX-License-Identifier: GPL-3.0-or-later
"""Many objects at once, all or none: how one POD, or sixty-four, become what a playbook says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from openipu.vipu import rules
from openipu.vipu.checks import MAX_BATCH_ITEMS, Code, Context, RuleError, shown
from openipu.vipu.model import Agent, Change, Cluster, Kind, Role, State, User
from openipu.vipu.specs import AllocationSpec, Outcome, PartitionSpec, Removal, Spec, UserSpec

_REMOVAL_ORDER = (Kind.PARTITION, Kind.ALLOCATION, Kind.CLUSTER, Kind.AGENT, Kind.USER)


_Item = TypeVar("_Item", bound=Spec | Removal)


@dataclass(frozen=True, slots=True)
class Batch:
    """Removals, which come first, and what is to exist afterwards.

    The same object in both is made anew. Users that may be new come as ``model.User``.
    """

    agents: tuple[Agent, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    allocations: tuple[AllocationSpec, ...] = ()
    partitions: tuple[PartitionSpec, ...] = ()
    users: tuple[UserSpec | User, ...] = ()
    removals: tuple[Removal, ...] = ()

    def specs(self) -> Iterator[tuple[Spec, ...]]:
        """The lists of what is to exist, in the order in which they depend on each other."""
        yield from (self.agents, self.clusters, self.allocations, self.partitions, self.users)

    def __len__(self) -> int:
        """All items."""
        return sum(map(len, self.specs()), len(self.removals))


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What became of one item; ``error`` and ``code`` are set when it failed."""

    kind: Kind
    id: str
    outcome: Outcome
    error: str = ""
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """``results`` stand in the order of the request: removals, agents, clusters, allocations, partitions, users."""

    changes: list[Change]
    results: list[ItemResult]
    applied: bool


def check_length(items: int) -> None:
    """Refuse a batch of too many items; raises RuleError."""
    if items > MAX_BATCH_ITEMS:
        raise RuleError(
            Code.INVALID_ARGUMENT,
            f"Cannot apply a batch of {items} items: at most {MAX_BATCH_ITEMS} are allowed; send several.",
        )


def apply_batch(state: State, batch: Batch, context: Context) -> BatchResult:
    """The changes after which everything is as the batch says, or none when any item fails.

    Removals are done in the order partitions, allocations, clusters, agents, users, then the specs in
    the order of the batch, each on top of the items before. The state is used for that and is as
    before when this returns. Raises RuleError only for a batch of too many items.
    """
    check_length(len(batch))
    # Whoever the batch wants as administrator is one in the end, wherever in it the old one goes.
    context = replace(context, admin_follows=any(spec.role is Role.ADMIN for spec in batch.users))
    work = _Work(state)
    try:
        results = [*_remove_all(work, batch, context), *_upsert_all(work, batch, context)]
    finally:
        work.undo()
    if work.failed:
        return BatchResult([], [_not_applied(result) for result in results], applied=False)
    return BatchResult(work.changes, results, applied=True)


def _remove_all(work: _Work, batch: Batch, context: Context) -> list[ItemResult]:
    recreated = frozenset(spec.id for spec in batch.allocations)

    def step(removal: Removal) -> tuple[Outcome, list[Change]]:
        return Outcome.REMOVED, rules.remove(work.state, removal, context, recreated)

    ordered = sorted(enumerate(batch.removals), key=lambda item: _REMOVAL_ORDER.index(item[1].kind))
    results = work.run("removals", ordered, step)
    return [results[index] for index in range(len(results))]


def _upsert_all(work: _Work, batch: Batch, context: Context) -> Iterator[ItemResult]:
    def step(spec: Spec) -> tuple[Outcome, list[Change]]:
        return rules.upsert(work.state, spec, context)

    for specs in batch.specs():
        if specs:
            yield from work.run(f"{specs[0].kind}s", enumerate(specs), step).values()


class _Work:
    """A state with the changes of the items so far, and how to take them back."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.changes: list[Change] = []
        self._not_made: set[tuple[Kind, str]] = set()
        self._undo: list[list[Change]] = []

    def run(
        self, name: str, items: Iterable[tuple[int, _Item]], step: Callable[[_Item], tuple[Outcome, list[Change]]]
    ) -> dict[int, ItemResult]:
        """Take a step for each item of the list called ``name``; a refusal becomes the result of its item."""
        results: dict[int, ItemResult] = {}
        first_at: dict[tuple[Kind, str], int] = {}
        for index, item in items:
            try:
                first = first_at.setdefault((item.kind, item.id), index)
                if first != index:
                    raise RuleError(
                        Code.INVALID_ARGUMENT,
                        f"Cannot apply {item.kind} {shown(item.id)} twice: "
                        f"it stands in {name}[{first}] and {name}[{index}].",
                    )
                outcome, changes = step(item)
            except RuleError as error:
                results[index] = self._result_of(item, error)
            else:
                self._undo.append(self.state.apply(changes))
                self.changes += changes
                results[index] = ItemResult(item.kind, item.id, outcome)
        return results

    def _result_of(self, item: Spec | Removal, error: RuleError) -> ItemResult:
        # What is missing only because its own item failed is no mistake of the items that need it.
        follows = error.needs in self._not_made
        self._not_made.add((item.kind, item.id))
        if follows:
            return ItemResult(item.kind, item.id, Outcome.NOT_APPLIED)
        return ItemResult(item.kind, item.id, Outcome.FAILED, error.sentence, error.code)

    @property
    def failed(self) -> bool:
        """Whether any item was refused."""
        return bool(self._not_made)

    def undo(self) -> None:
        """Bring the state back to what it was."""
        for changes in reversed(self._undo):
            self.state.apply(changes)


def _not_applied(result: ItemResult) -> ItemResult:
    if result.outcome in (Outcome.FAILED, Outcome.UNCHANGED):
        return result
    return replace(result, outcome=Outcome.NOT_APPLIED)
