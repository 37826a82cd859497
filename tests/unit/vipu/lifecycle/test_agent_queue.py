# SPDX-License-Identifier: GPL-3.0-or-later
"""Queue of one agent: limits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from openipu.vipu.agent_api.limits import MAX_PARTITIONS_PER_CALL
from openipu.vipu.lifecycle.agent_queue import AgentQueue


def test_invented_partitions_cannot_fill_the_queue() -> None:
    down: Any = SimpleNamespace(up=False)
    unused: Any = None
    queue = AgentQueue(down, unused, unused, 1.0)
    for number in range(10_000):
        queue.release_unknown(f"x{number}")
    assert len(queue._releases) == MAX_PARTITIONS_PER_CALL
    queue.release("p")
    assert list(queue._releases)[-1] == "p", "releases of removed partitions are not limited"
