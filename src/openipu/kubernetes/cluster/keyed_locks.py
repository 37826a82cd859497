# SPDX-License-Identifier: GPL-3.0-or-later
"""One lock per key, which exists as long as it is used."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(slots=True)
class _Shared:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0  # tasks that hold it or wait for it


class KeyedLocks(Generic[_Key]):
    """Locks of an event loop by key."""

    def __init__(self) -> None:
        self._locks: dict[_Key, _Shared] = {}

    def __len__(self) -> int:
        """Return the number of keys that are locked, or are about to be."""
        return len(self._locks)

    @contextlib.asynccontextmanager
    async def hold(self, key: _Key) -> AsyncIterator[None]:
        """Hold the lock of a key."""
        # Counted: a lock that is released for a waiting task reports itself as free until this task runs.
        shared = self._locks.setdefault(key, _Shared())
        shared.users += 1
        try:
            async with shared.lock:
                yield
        finally:
            shared.users -= 1
            if not shared.users:
                del self._locks[key]
