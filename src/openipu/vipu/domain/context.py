# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the rules besides the records."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal


class AllAllocations(enum.Enum):
    """Type of ``ALL_ALLOCATIONS``, with the operations of a set of ids."""

    ALL = "all"

    def __contains__(self, allocation: str | None) -> bool:
        """Return whether this is an allocation; None is not."""
        return allocation is not None

    def isdisjoint(self, allocations: Iterable[str]) -> bool:
        """Return whether there are no allocations."""
        return not any(True for _ in allocations)


ALL_ALLOCATIONS: Final = AllAllocations.ALL
"""Present and future allocations, but no objects outside of them, in contrast to the rights of an administrator."""

Allowed = frozenset[str] | Literal[AllAllocations.ALL]
"""Allocations that a user may use."""


def _none_is_up(agent_id: str) -> bool:
    """Return False: without a fleet, no agent is Up."""
    return False


@dataclass(frozen=True, slots=True)
class Context:
    """Input of the rules besides the records.

    ``unavailable``: agents that are Down; the controller never chooses them for a partition.
    ``quarantined``: agent -> one bit for each IPU in quarantine, which no partition may use.
    ``allowed``: the allocations that a user may use, None for an administrator. A user gets NOT_FOUND for
    other allocations and their partitions, so that their existence is not disclosed. It gets
    PERMISSION_DENIED for everything that is not a partition.
    ``cluster_under_test``: the cluster under test; nothing is placed in it, and it cannot change.
    ``without_users``: the controller has no TLS, so that callers need no user: the last administrator can be removed.
    ``is_placed``: the partition exists already, so its machines may be out of service.
    ``is_up``: returns whether an agent is Up. After a start, an agent is neither Up nor Down until it was called.
    ``keeps_admin``: the same transaction leaves an administrator in any case.
    """

    unavailable: frozenset[str] = frozenset()
    allowed: Allowed | None = None
    max_retries: int = 3
    keeps_admin: bool = False
    without_users: bool = False
    cluster_under_test: str = ""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    is_placed: bool = False
    is_up: Callable[[str], bool] = _none_is_up

    @property
    def administrator(self) -> bool:
        """Return whether the caller has all rights. A user of all allocations has not."""
        return self.allowed is None

    def may_use(self, allocation: str) -> bool:
        """Return whether the caller may use partitions of this allocation."""
        return self.allowed is None or allocation in self.allowed
