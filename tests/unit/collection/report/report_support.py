# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of reports: runs of cluster tests and the state of a controller."""

from __future__ import annotations

import copy
import functools
from typing import Any

from ansible_collections.openipu.pod.plugins.module_utils.report import pdus
from ansible_collections.openipu.pod.plugins.module_utils.vipu import objects

from openipu.vipu.api import cluster_test_messages
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import Run, RunState
from openipu.vipu.cluster_test.selection import DEFAULT_TESTS
from openipu.vipu.domain.model import Topology
from tests.unit.vipu.cluster_test.rack_support import Bench

AGENTS = [f"ag{number:02}" for number in range(1, 17)]


def run_of(bench: Bench, tests: tuple[Test, ...] = DEFAULT_TESTS) -> dict[str, Any]:
    """Return a run of these tests on a rack."""
    verdicts = tuple(verdict.with_duration(0.01) for verdict in bench.run(tests).values())
    run = Run("1", bench.cluster, tests, (), 1772366360.0, RunState.FINISHED, verdicts, None, 1772366361.0)
    return dict(objects.test_run(cluster_test_messages.run(run)))


@functools.cache
def _passing() -> dict[str, Any]:
    return run_of(Bench(16, 1, Topology.TORUS))


@functools.cache
def _failing() -> dict[str, Any]:
    bench = Bench(16, 1, Topology.TORUS)
    bench.wiring.unplug(bench.wiring.place("ag03:7"))
    bench.hardware("ag08").versions["Virm"] = "1.17.0"
    return run_of(bench)


@functools.cache
def _domains() -> dict[str, Any]:
    bench = Bench(2, 2)
    bench.wiring.degrade(bench.wiring.place("ag02:gw1"), dead=True)
    return run_of(bench)


def domains() -> dict[str, Any]:
    """Return a run on two domains of two machines; the GW-Link from ag02 to ag04 is broken."""
    return copy.deepcopy(_domains())


@functools.cache
def _four(swapped: bool) -> dict[str, Any]:
    bench = Bench(4, 4)
    if swapped:
        bench.wiring.swap(bench.wiring.place("ag06:gw2"), bench.wiring.place("ag11:gw2"))
    else:
        bench.wiring.degrade(bench.wiring.place("ag02:gw1"), dead=True)
    return run_of(bench)


def four_domains(*, swapped: bool = False) -> dict[str, Any]:
    """Return a run on four domains of four machines.

    The GW-Link from ag02 to ag06 is broken, or exchanged with the one to ag11.
    """
    return copy.deepcopy(_four(swapped))


def passing() -> dict[str, Any]:
    """Return a run on a rack without faults."""
    return copy.deepcopy(_passing())


def failing() -> dict[str, Any]:
    """Return a run on a rack with an unplugged cable at ag03 and another version on ag08."""
    return copy.deepcopy(_failing())


@functools.cache
def _five() -> dict[str, Any]:
    bench = Bench(16, 1, Topology.TORUS)
    wiring = bench.wiring
    wiring.swap(wiring.place("ag05:5"), wiring.place("ag05:6"))
    wiring.unplug(wiring.place("ag03:7"))
    wiring.move(wiring.place("ag12:1"), wiring.place("ag13:gw1"))
    wiring.degrade(wiring.place("ag09:sync6"), dead=True)
    bench.hardware("ag08").versions["Virm"] = "1.17.0"
    return run_of(bench)


def five_faults() -> dict[str, Any]:
    """Return a run with five faults: cables exchanged, unplugged and misplaced, a broken Sync-Link, another version."""
    return copy.deepcopy(_five())


def readings() -> dict[str, Any]:
    """Return the results of pdu_info for the PDUs of the twin, of which pdu2 does not respond."""
    message = "Cannot reach pdu2 at 10.1.3.132:161: no response within 8 s. Check that it is up."
    device = {"power": 9.61, "rating": 22.0, "load_state": "normal"}
    return pdus.checked({"pdu1": {"device": device, "alarms": []}, "pdu2": {"msg": message, "failed": False}})


def info() -> dict[str, Any]:
    """Return the result of vipu_info for the twin."""

    def ipus(first: int, count: int) -> list[dict[str, int]]:
        return [
            {"ild": 0, "topology_id": first + number, "ild_routing_id": 0, "routing_id": number}
            for number in range(count)
        ]

    def partition(id: str, allocation: str, state: str, first: int, count: int) -> dict[str, Any]:
        where = {"id": id, "allocation": allocation, "cluster": "cl0", "state": state}
        return {**where, "size": count, "ipus": ipus(first, count)}

    return {
        "agents": [
            {"id": id, "host": f"127.2.1.{number}", "port": 8080, "state": "Up"} for number, id in enumerate(AGENTS, 1)
        ],
        "clusters": [{"id": "cl0", "agents": list(AGENTS), "num_ilds": 1, "topology": "torus"}],
        "allocations": [
            {"id": "team-a", "cluster": "cl0", "agents": AGENTS[:8]},
            {"id": "team-b", "cluster": "cl0", "agents": AGENTS[8:]},
        ],
        "partitions": [
            partition("vision", "team-a", "ACTIVE", 0, 16),
            partition("language", "team-b", "ACTIVE", 32, 16),
            partition("notebook", "team-b", "ERROR", 60, 2),
        ],
        "ipu_attributes": {id: {"0": {"firmware version": "2.4.4", "driver version": "1.0.58"}} for id in AGENTS},
    }
