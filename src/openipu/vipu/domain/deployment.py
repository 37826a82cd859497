# SPDX-License-Identifier: GPL-3.0-or-later
"""Identity of a controller: its deployment, and the epoch of its process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deployment:
    """Identity of a database, and of the controller process that uses it.

    ``id``: made with the database and kept by backups.
    ``epoch``: number of the process, higher than those of all earlier processes of the deployment.
    ``complete_since``: first epoch since which the records are complete. Changes of earlier epochs may be missing,
    because a backup was restored.
    """

    id: str
    epoch: int = 0
    complete_since: int = 0


def next_epoch(last: int, now: float) -> int:
    """Return the epoch that follows ``last``. ``now``: seconds since 1970.

    The time makes it higher than the epochs that a restored backup does not contain.
    """
    return max(last + 1, int(now))
