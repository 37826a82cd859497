# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the rules besides the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Context:
    """Input of the rules besides the records.

    ``unavailable``: agents that are Down; the controller never chooses them for a partition.
    ``quarantined``: agent -> one bit for each IPU in quarantine, which no partition may use.
    ``allowed``: the allocations that the caller may use, None for all. Such a caller gets NOT_FOUND for
    other allocations and their partitions, so that their existence is not disclosed. It gets
    PERMISSION_DENIED for everything that is not a partition.
    ``cluster_under_test``: the cluster under test; nothing is placed in it, and it cannot change.
    ``without_users``: the controller has no TLS, so that callers need no user: the last administrator can be removed.
    ``keeps_admin``: the same transaction leaves an administrator in any case.
    """

    unavailable: frozenset[str] = frozenset()
    allowed: frozenset[str] | None = None
    max_retries: int = 3
    keeps_admin: bool = False
    without_users: bool = False
    cluster_under_test: str = ""
    quarantined: Mapping[str, int] = field(default_factory=dict)

    def may_use(self, allocation: str) -> bool:
        """Return whether the caller may use partitions of this allocation."""
        return self.allowed is None or allocation in self.allowed
