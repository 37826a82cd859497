# SPDX-License-Identifier: GPL-3.0-or-later
"""Partitions whose records a restore removes or moves to other IPUs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from openipu.vipu.domain.model import Partition
from openipu.vipu.domain.state import State
from openipu.vipu.storage.last_revision import SUFFIX
from openipu.vipu.storage.store import Store, StoreError

_SHOWN = 20  # partitions in an error message


@dataclass(frozen=True, slots=True)
class Losses:
    """Ids of partitions, sorted. It is true when any of them are lost, or that is unknown.

    ``missing``: not in the backup. ``moved``: on other IPUs or agents there.
    ``unreadable``: message why the existing records cannot be read, empty when they can.
    """

    missing: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    unreadable: str = ""

    def __bool__(self) -> bool:
        return bool(self.missing or self.moved or self.unreadable)

    def lines(self) -> list[str]:
        """Return a list for an administrator."""
        lines = []
        if self.unreadable:
            lines.append(f"Cannot read the existing records: {self.unreadable}")
        if self.missing:
            lines.append(f"Partitions that are not in the backup: {', '.join(self.missing)}")
        if self.moved:
            lines.append(f"Partitions on other IPUs or agents in the backup: {', '.join(self.moved)}")
        return [
            *lines,
            "Their records are replaced. Jobs continue: IPUs that machines hold for these partitions will be in "
            "quarantine.",
        ]

    def clause(self) -> str:
        """Return the reason for a confirmation."""
        if self.unreadable:
            return "partitions may lose their records"
        ids = sorted((*self.missing, *self.moved))
        more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        return f"partitions would lose their records: {', '.join(ids[:_SHOWN])}{more}"


Confirm = Callable[[Losses], None]
"""Function that raises BackupError when a restore must not continue."""


def accept(losses: Losses) -> None:
    """Accept all losses."""


def find(database: Path, restored: State, folder: Path) -> Losses:
    """Compare a locked database with the state that replaces it. ``folder``: empty, for a copy of the database."""
    copy = folder / "existing.db"
    try:
        for suffix in ("", "-wal", SUFFIX):  # the original must not change, not even its write-ahead log
            if Path(f"{database}{suffix}").exists():
                shutil.copyfile(f"{database}{suffix}", f"{copy}{suffix}")
        with closing(Store(copy)) as store:
            existing = store.load()
    except (StoreError, OSError, sqlite3.Error) as error:
        return Losses(unreadable=str(error).replace(str(copy), str(database)))
    return compare(existing, restored)


def compare(existing: State, restored: State) -> Losses:
    """Return the partitions of a state that another one does not have, or has on other machines."""
    common = existing.partitions.keys() & restored.partitions.keys()
    moved = (
        id for id in common if _ipus(existing, existing.partitions[id]) != _ipus(restored, restored.partitions[id])
    )
    return Losses(tuple(sorted(existing.partitions.keys() - common)), tuple(sorted(moved)))


def _ipus(state: State, partition: Partition) -> list[tuple[str, str, int, int]]:
    """Return agent, host, port and number of each IPU."""
    agents = state.agents
    return [(id, agents[id].host, agents[id].port, ipu) for id, ipu in state.machines_of(partition)]
