# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches: many objects in one change, all or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from openipu.vipu.domain import rules
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.domain.model import Agent, Change, Cluster, Kind, Role, User
from openipu.vipu.domain.specs import AgentSpec, AllocationSpec, Outcome, PartitionSpec, Removal, Spec, UserSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import MAX_BATCH_ITEMS

_REMOVAL_ORDER = (Kind.PARTITION, Kind.ALLOCATION, Kind.CLUSTER, Kind.AGENT, Kind.USER)


_Item = TypeVar("_Item", bound=Spec | Removal)


@dataclass(frozen=True, slots=True)
class Batch:
    """Removals, which are applied first, and desired objects.

    An object in both is removed and created again. Users that may be new are given as ``model.User``.
    """

    agents: tuple[AgentSpec | Agent, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    allocations: tuple[AllocationSpec, ...] = ()
    partitions: tuple[PartitionSpec, ...] = ()
    users: tuple[UserSpec | User, ...] = ()
    removals: tuple[Removal, ...] = ()

    def specs(self) -> Iterator[tuple[Spec, ...]]:
        """Yield the lists of desired objects in the order of their dependencies."""
        yield from (self.agents, self.clusters, self.allocations, self.partitions, self.users)

    def __len__(self) -> int:
        """Return the number of items."""
        return sum(map(len, self.specs()), len(self.removals))


@dataclass(frozen=True, slots=True)
class ItemResult:
    """Result of one item; ``error`` and ``code`` are set when it failed."""

    kind: Kind
    id: str
    outcome: Outcome
    error: str = ""
    code: Code | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Result of a batch.

    ``results`` are in the order of the request: removals, agents, clusters, allocations, partitions, users.
    """

    changes: list[Change]
    results: list[ItemResult]
    applied: bool


def check_length(items: int) -> None:
    """Raise RuleError for a batch of too many items."""
    if items > MAX_BATCH_ITEMS:
        raise RuleError(
            Code.INVALID_ARGUMENT,
            f"Cannot apply a batch of {items} items: at most {MAX_BATCH_ITEMS} are allowed. Send several batches.",
        )


def apply_batch(state: State, batch: Batch, context: Context) -> BatchResult:
    """Return the changes that apply a batch, or none when any item fails.

    Removals are applied in the order partitions, allocations, clusters, agents, users. The specs follow
    in the order of the batch, each on top of the previous items. The state is modified meanwhile and
    restored before this returns. Raises RuleError only for a batch of too many items.
    """
    check_length(len(batch))
    # An administrator in the batch remains afterwards, even when the batch removes the last one first.
    context = replace(context, keeps_admin=any(spec.role is Role.ADMIN for spec in batch.users))
    trial = _Trial(state)
    try:
        results = [*_remove_all(trial, batch, context), *_upsert_all(trial, batch, context)]
    finally:
        trial.undo()
    if trial.failed:
        return BatchResult([], [_not_applied(result) for result in results], applied=False)
    return BatchResult(trial.changes, results, applied=True)


def with_failures(result: BatchResult, agents: Mapping[str, RuleError]) -> BatchResult:
    """Return the result of an applied batch whose follow-up failed for some agents. Their records stay changed."""

    def checked(item: ItemResult) -> ItemResult:
        error = agents.get(item.id) if item.kind is Kind.AGENT and item.outcome is not Outcome.REMOVED else None
        return replace(item, outcome=Outcome.FAILED, error=error.message, code=error.code) if error else item

    return replace(result, results=[checked(item) for item in result.results])


def _remove_all(trial: _Trial, batch: Batch, context: Context) -> list[ItemResult]:
    recreated = frozenset(spec.id for spec in batch.allocations)

    def step(removal: Removal) -> tuple[Outcome, list[Change]]:
        return Outcome.REMOVED, rules.remove(trial.state, removal, context, recreated)

    ordered = sorted(enumerate(batch.removals), key=lambda item: _REMOVAL_ORDER.index(item[1].kind))
    results = trial.run("removals", ordered, step)
    return [results[index] for index in range(len(results))]


def _upsert_all(trial: _Trial, batch: Batch, context: Context) -> Iterator[ItemResult]:
    def step(spec: Spec) -> tuple[Outcome, list[Change]]:
        return rules.upsert(trial.state, spec, context)

    for specs in batch.specs():
        if specs:
            yield from trial.run(f"{specs[0].kind}s", enumerate(specs), step).values()


class _Trial:
    """State with the changes of the previous items, and the changes that undo them."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.changes: list[Change] = []
        self._failed: set[tuple[Kind, str]] = set()
        self._undo: list[list[Change]] = []

    def run(
        self, name: str, items: Iterable[tuple[int, _Item]], step: Callable[[_Item], tuple[Outcome, list[Change]]]
    ) -> dict[int, ItemResult]:
        """Run a step for each item of the list ``name``; a rule error becomes the result of its item."""
        results: dict[int, ItemResult] = {}
        first_at: dict[tuple[Kind, str], int] = {}
        for index, item in items:
            try:
                first = first_at.setdefault((item.kind, item.id), index)
                if first != index:
                    raise RuleError(
                        Code.INVALID_ARGUMENT,
                        f"Cannot apply {item.kind} {quoted(item.id)}: "
                        f"it is listed in {name}[{first}] and {name}[{index}]. List it once.",
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
        # An item is not at fault when it needs an object whose own item failed.
        consequential = error.needs in self._failed
        self._failed.add((item.kind, item.id))
        if consequential:
            return ItemResult(item.kind, item.id, Outcome.NOT_APPLIED)
        return ItemResult(item.kind, item.id, Outcome.FAILED, error.message, error.code)

    @property
    def failed(self) -> bool:
        """Return whether any item was rejected."""
        return bool(self._failed)

    def undo(self) -> None:
        """Restore the original state."""
        for changes in reversed(self._undo):
            self.state.apply(changes)


def _not_applied(result: ItemResult) -> ItemResult:
    if result.outcome in (Outcome.FAILED, Outcome.UNCHANGED):
        return result
    return replace(result, outcome=Outcome.NOT_APPLIED)
