# SPDX-License-Identifier: GPL-3.0-or-later
"""A ``vipu-server`` whose defences against a former leader are off, to prove that the checker notices their absence.

Writes compare nothing, reads are not confirmed, and the lease is never noticed as lost.
"""

from __future__ import annotations

from typing import Any

from openipu.vipu.server.main import main
from openipu.vipu.storage.etcd import election, writes


def no_guards(*arguments: Any) -> list[Any]:
    return []


def nothing(self: election.Leadership) -> None:
    pass


if __name__ == "__main__":
    writes.guards = no_guards
    election.Leadership.check = nothing  # type: ignore[method-assign]
    election.Leadership.lose = nothing  # type: ignore[method-assign]
    main()
