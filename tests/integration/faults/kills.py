# SPDX-License-Identifier: GPL-3.0-or-later
"""``kill -9`` of a ``vipu-server`` in the middle of a storm, again and again, on one database."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from agents_support import RackProcess
from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin, virmgrpc
from storm import Storm
from vipu_servers import Process
from waiting import until

from openipu.vipu import invariants
from openipu.vipu.initialise import initialise
from openipu.vipu.store import Store

MACHINES = 16


class KilledAgain:
    """A rack that lives on, and a controller that does not."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.database = folder / "vipu-server.db"
        self.storm = Storm("a1", seed)
        self.rack = RackProcess(folder, MACHINES)
        self.server: Process | None = None

    def close(self) -> None:
        """End both."""
        if self.server is not None:
            self.server.stop()
        self.rack.close()

    def start(self) -> Process:
        """The controller, started; the first time with everything below partitions."""
        initialise(self.database)
        self.server = server = Process("--database", str(self.database), "--log-level", "warning")
        agents = [admin.AgentSpec(id=agent.id, host=agent.host, port=agent.port) for agent in self.rack.agents]
        names = [agent.id for agent in agents]
        reply = server.admin.Apply(
            admin.ApplyRequest(
                agents=agents,
                clusters=[
                    admin.ClusterSpec(id="cl0", agent_ids=names, ipu_link_topology=admin.IPU_LINK_TOPOLOGY_TORUS)
                ],
                allocations=[admin.AllocationSpec(id="a1", cluster_id="cl0", agent_ids=names)],
            )
        )
        assert reply.applied, reply.results
        return server

    def round(self) -> None:
        """Start, look what is left of the round before, rage, kill, and look into the database."""
        server = self.start()
        self.check_promises(server)
        reached, writers = self.storm.rage(server.address, until=self.storm.random.randint(1, 300))
        assert reached.wait(60), "the storm does not get on"
        server.kill()
        server.close()
        for writer in writers:
            writer.join(40)
            assert not writer.is_alive(), "a call neither failed nor was answered when the controller was killed"
        self.check_database()

    def check_promises(self, server: Process) -> None:
        """What was acknowledged is there at once; what was cut off comes to an end, and the books take it over."""
        faults = [fault for books in self.storm.books for fault in books.faults(sizes(listed(server)))]
        assert not faults, faults
        (found,) = until(lambda: settled(server), 30)
        for books in self.storm.books:
            books.settle(sizes(found))
        faults = [fault for books in self.storm.books for fault in books.faults(sizes(found))]
        assert not faults, faults
        known = {id for books in self.storm.books for id in books.present}
        assert known == sizes(found).keys()
        used = Counter(
            (ipu.ipulink_domain_topology_id, ipu.topology_id) for partition in found for ipu in partition.spec.ipus
        )
        assert all(count == 1 for count in used.values()), f"in two partitions: {used.most_common(3)}"

    def check_database(self) -> None:
        """The file is whole, and what is in it follows the rules."""
        with sqlite3.connect(self.database) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()
        store = Store(self.database)
        try:
            assert invariants.violations(store.load()) == []
        finally:
            store.close()

    def check_rack(self, server: Process) -> None:
        """The IPU-Machines hold the partitions that the controller lists, and no others."""
        expected: dict[str, set[str]] = {agent.id: set() for agent in self.rack.agents}
        for partition in listed(server):
            for ipu in partition.spec.ipus:
                expected[self.rack.agents[ipu.topology_id // 4].id].add(partition.id)

        def agreed() -> bool:
            return {machine.agent_id: set(machine.partition_ids) for machine in self.rack.machines()} == expected

        until(agreed, 15)


def listed(server: Process) -> list[Any]:
    """All partitions."""
    return list(server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=10).partitions)


def sizes(partitions: list[Any]) -> dict[str, int]:
    """Id -> IPUs."""
    return {partition.id: len(partition.spec.ipus) for partition in partitions}


def settled(server: Process) -> tuple[list[Any]] | None:
    """All partitions once each of them is ACTIVE, or in ERROR with a sentence; None before."""
    partitions = listed(server)
    for partition in partitions:
        if partition.ready_state == virmgrpc.PS_ERROR:
            request = virmgrpc.GetPartitionStatusRequest(partition_id=partition.id)
            errors = server.user.GetPartitionStatus(request, timeout=10).status.errors
            assert errors, f"{partition.id} is in ERROR and does not say why"
        elif partition.ready_state != virmgrpc.PS_ACTIVE:
            return None
    return (partitions,)


def run(folder: Path, rounds: int, seed: int) -> None:
    """That many rounds, and a last look at everything."""
    life = KilledAgain(folder, seed)
    try:
        for number in range(rounds):
            try:
                life.round()
            except AssertionError as error:
                raise AssertionError(f"round {number + 1} with seed {seed}: {error}") from error
        server = life.start()
        life.check_promises(server)
        life.check_rack(server)
    finally:
        life.close()
