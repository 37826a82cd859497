# SPDX-License-Identifier: GPL-3.0-or-later
"""Repeated ``kill -9`` of a ``vipu-server`` under load, on one database."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.domain import invariants
from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage.store import Store
from tests.integration.agents.agents_support import RackProcess
from tests.integration.faults.create_remove_load import Load
from tests.integration.vipu_servers import Process
from tests.waiting import until

MACHINES = 16
SEED = "OPENIPU_KILL_SEED"  # environment variable


class RepeatedKills:
    """Rack that runs throughout, and a controller that is killed in each round."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.database = folder / "vipu-server.db"
        self.load = Load("a1", seed)
        self.rack = RackProcess(folder, MACHINES)
        self.server: Process | None = None

    def close(self) -> None:
        """Stop both."""
        if self.server is not None:
            self.server.stop()
        self.rack.close()

    def start(self) -> Process:
        """Start the controller and apply its agents, cluster and allocation."""
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
        """Start the controller, check the previous round, run the load, kill it, and check the database."""
        server = self.start()
        self.check_acknowledged(server)
        reached, writers = self.load.start(server.address, until=self.load.random.randint(1, 300))
        assert reached.wait(60), "the load does not reach its number of changes"
        server.kill()
        server.close()
        for writer in writers:
            writer.join(40)
            assert not writer.is_alive(), "a call neither failed nor returned when the controller was killed"
        self.check_database()

    def check_acknowledged(self, server: Process) -> None:
        """Check that acknowledged changes exist at once, and that interrupted ones end; the records are updated."""
        faults = [fault for record in self.load.records for fault in record.faults(sizes(listed(server)))]
        assert not faults, faults
        (found,) = until(lambda: settled(server), 30)
        for record in self.load.records:
            record.settle(sizes(found))
        faults = [fault for record in self.load.records for fault in record.faults(sizes(found))]
        assert not faults, faults
        known = {id for record in self.load.records for id in record.present}
        assert known == sizes(found).keys()
        used = Counter(
            (ipu.ipulink_domain_topology_id, ipu.topology_id) for partition in found for ipu in partition.spec.ipus
        )
        assert all(count == 1 for count in used.values()), f"in two partitions: {used.most_common(3)}"

    def check_database(self) -> None:
        """Check that the file is intact and its records are valid."""
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
        """Check that the IPU-Machines hold exactly the partitions that the controller lists."""
        expected: dict[str, set[str]] = {agent.id: set() for agent in self.rack.agents}
        for partition in listed(server):
            for ipu in partition.spec.ipus:
                expected[self.rack.agents[ipu.topology_id // 4].id].add(partition.id)

        def agreed() -> bool:
            return {machine.agent_id: set(machine.partition_ids) for machine in self.rack.machines()} == expected

        until(agreed, 15)


def listed(server: Process) -> list[Any]:
    """Return all partitions."""
    return list(server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=10).partitions)


def sizes(partitions: list[Any]) -> dict[str, int]:
    """Return the number of IPUs of each partition by id."""
    return {partition.id: len(partition.spec.ipus) for partition in partitions}


def settled(server: Process) -> tuple[list[Any]] | None:
    """Return all partitions once each of them is ACTIVE, or in ERROR with a message; None before."""
    partitions = listed(server)
    for partition in partitions:
        if partition.ready_state == virmgrpc.PS_ERROR:
            request = virmgrpc.GetPartitionStatusRequest(partition_id=partition.id)
            errors = server.user.GetPartitionStatus(request, timeout=10).status.errors
            assert errors, f"{partition.id} is in ERROR without a message"
        elif partition.ready_state != virmgrpc.PS_ACTIVE:
            return None
    return (partitions,)


def random_seed() -> int:
    """Return the seed in the environment, by default a random one."""
    return int(os.environ.get(SEED) or int.from_bytes(os.urandom(4), "big"))


def run(folder: Path, rounds: int, seed: int) -> None:
    """Run rounds and check everything at the end; a failure of any kind reports the seed."""
    step = "start"
    life: RepeatedKills | None = None
    try:
        life = RepeatedKills(folder, seed)
        for number in range(1, rounds + 1):
            step = f"round {number}"
            life.round()
        step = "final check"
        server = life.start()
        life.check_acknowledged(server)
        life.check_rack(server)
    except Exception as error:
        raise AssertionError(f"{step} with seed {seed} (set {SEED}={seed} to repeat it): {error!r}") from error
    finally:
        if life is not None:
            life.close()
