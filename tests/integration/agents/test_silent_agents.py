# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents that do not respond for a time: shares that stay configured are not reset."""

from __future__ import annotations

import signal
import time
from typing import Any

from openipu.vipu.domain.model import Operation, ReadyState
from tests.integration.agents.agents_support import Plane
from tests.waiting import until


def active(plane: Plane, *ids: str, **options: Any) -> None:
    for id in ids:
        plane.create(id, 4, **options)
    for id in ids:
        plane.wait_active(id)


def assert_no_reset(plane: Plane, *ids: str) -> None:
    assert [id for id, _, operation in plane.history if operation is Operation.RESETTING] == []
    assert [(plane.partition(id).retries, plane.partition(id).errors) for id in ids] == [(0, ())] * len(ids)


def test_partitions_survive_a_pause_of_all_agents(plane: Plane) -> None:
    active(plane, "p1", "p2", "p3")
    for _ in range(4):  # more often than automatic resets are allowed
        plane.rack.process.send_signal(signal.SIGSTOP)
        for id in ("p1", "p2", "p3"):
            assert plane.wait_error(id).operation is Operation.UNREACHABLE
        plane.rack.process.send_signal(signal.SIGCONT)
        for id in ("p1", "p2", "p3"):
            plane.wait_active(id)
    assert_no_reset(plane, "p1", "p2", "p3")


def test_a_partition_is_regained_after_the_last_of_its_agents(plane: Plane) -> None:
    plane.create("p", 8)
    plane.wait_active("p")
    first, second = plane.agents_of("p")
    for agent in (first, second):
        plane.rack.fault(f"hang {agent}")
        plane.wait_down(agent)
    until(lambda: len(plane.partition("p").errors) == 2, what="both causes")
    plane.rack.fault(f"heal {first}")
    plane.wait_up(first)
    plane.wait_events(first, 3)
    assert plane.partition("p").ready is ReadyState.ERROR
    plane.rack.fault(f"heal {second}")
    plane.wait_active("p")
    assert_no_reset(plane, "p")


def test_a_partition_is_reset_when_an_ipu_failed_during_the_silence(plane: Plane) -> None:
    active(plane, "p")
    (agent,) = plane.agents_of("p")
    plane.rack.fault(f"hang {agent}")
    plane.wait_down(agent)
    plane.wait_error("p")
    plane.rack.fault(f"ipu {agent} 1", f"heal {agent}")
    until(lambda: plane.partition("p").retries == 1)
    plane.wait_active("p")


def test_a_relocatable_partition_stays_during_a_short_outage(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(2), relocation_delay=600.0)
    plane.wait_up()
    active(plane, "p", relocatable=True)
    (agent,) = plane.agents_of("p")
    plane.rack.fault(f"hang {agent}")
    plane.wait_error("p")
    plane.rack.fault(f"heal {agent}")
    plane.wait_active("p")
    assert plane.agents_of("p") == [agent]
    assert_no_reset(plane, "p")


def test_a_relocatable_partition_moves_after_the_delay(make_rack: Any, make_plane: Any) -> None:
    plane = make_plane(make_rack(2), relocation_delay=1.5)
    plane.wait_up()
    active(plane, "p", relocatable=True)
    (agent,) = plane.agents_of("p")
    plane.rack.fault(f"hang {agent}")
    plane.wait_error("p")
    begun = time.monotonic()
    until(lambda: plane.partition("p").retries == 1)
    assert time.monotonic() - begun > 1.0
    plane.wait_active("p")
    assert plane.agents_of("p") != [agent]


def test_an_unreachable_partition_is_regained_after_a_restart_of_the_controller(
    make_rack: Any, make_plane: Any
) -> None:
    rack = make_rack(1)
    plane = make_plane(rack)
    plane.wait_up()
    active(plane, "p")
    rack.fault("hang ag01")
    plane.wait_error("p")
    plane.close()
    rack.fault("heal ag01")
    restarted = make_plane(rack)
    restarted.wait_active("p")
    assert_no_reset(restarted, "p")
