# SPDX-License-Identifier: GPL-3.0-or-later
"""Pauses of the controller, of the agents and of the network between them, with running partitions."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.agent_api.contract import agent as agent_api
from openipu.vipu.server.initialise import initialise
from tests.integration.agents.agents_support import RackProcess
from tests.integration.vipu_servers import Process
from tests.waiting import until

MACHINES = 16
PARTS = ("controller", "agents", "network")
LONG_PAUSES = (1.0, 5.5, 20.0, 60.0)  # seconds
RELAY = Path(__file__).with_name("relay.py")


class PausedRack:
    """Rack with a running partition on every machine. Each of its parts can be paused."""

    def __init__(self, folder: Path) -> None:
        """Start all processes and partitions. What has started is stopped again when a later step fails."""
        with ExitStack() as started:
            self.rack = RackProcess(folder, MACHINES)
            started.callback(self.rack.close)
            self.relay = subprocess.Popen(
                [sys.executable, str(RELAY), *(f"{agent.host}:{agent.port}" for agent in self.rack.agents)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            started.callback(self.relay.communicate)  # closes its standard input, which ends it
            initialise(folder / "vipu-server.db")
            self.server = Process("--database", str(folder / "vipu-server.db"), "--log-level", "info")
            started.callback(self.server.stop)
            self._configure()
            self.revisions = self._revisions()
            self._started = started.pop_all()

    def close(self) -> None:
        """Stop all processes."""
        for process in (self.server.process, self.rack.process, self.relay):
            process.send_signal(signal.SIGCONT)
        self._started.close()

    def _configure(self) -> None:
        """Create agents, which the controller reaches through the relay, and a partition on each of them."""
        assert self.relay.stdout
        ports = [int(port) for port in self.relay.stdout.readline().split()]
        names = [agent.id for agent in self.rack.agents]
        reply = self.server.admin.Apply(
            admin.ApplyRequest(
                agents=[
                    admin.AgentSpec(id=name, host="127.0.0.1", port=port)
                    for name, port in zip(names, ports, strict=True)
                ],
                clusters=[admin.ClusterSpec(id="cl0", agent_ids=names)],
                allocations=[admin.AllocationSpec(id="a1", cluster_id="cl0", agent_ids=names)],
            )
        )
        assert reply.applied, reply.results
        self.wait_active()  # the agents are up, so each machine is configured by one call
        for number in range(MACHINES):
            requirements = virmgrpc.PartitionRequirements(id=f"p{number}", size=4, allocation_id="a1")
            self.server.user.CreatePartition(virmgrpc.CreatePartitionRequest(requirements=requirements), timeout=20)
        self.wait_active()

    def pause(self, part: str, seconds: float) -> None:
        """Stop a part for this time, and wait until all partitions are active again."""
        process = {"controller": self.server.process, "agents": self.rack.process, "network": self.relay}[part]
        process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)  # the duration of the pause is the subject of the test
        finally:
            process.send_signal(signal.SIGCONT)
        self.wait_active()

    def wait_active(self) -> None:
        """Wait until all agents are up and all partitions are active."""

        def settled() -> bool:
            agents = self.server.admin.ListAgents(admin.ListAgentsRequest(), timeout=20).agents
            partitions = self.server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=20).partitions
            return all(agent.state == admin.AGENT_STATE_UP for agent in agents) and all(
                partition.ready_state == virmgrpc.PS_ACTIVE for partition in partitions
            )

        until(settled, 60, "all agents up and all partitions active")

    def assert_no_reset(self) -> None:
        """Check that no partition was reset, by the controller and by the machines."""
        for number in range(MACHINES):
            status = self.status(f"p{number}")
            assert (status.auto_reset_retry_count, status.HasField("last_auto_reset_time")) == (0, False), status
        assert self._revisions() == self.revisions, "an agent configured or released a share"

    def assert_agents_stayed_up(self) -> None:
        """Check that the controller has not reported an agent as Down."""
        assert not [line for line in self.server.errors if "agent down" in line]

    def status(self, id: str) -> Any:
        """Return the status of a partition."""
        request = virmgrpc.GetPartitionStatusRequest(partition_id=id)
        return self.server.user.GetPartitionStatus(request, timeout=20).status

    def _revisions(self) -> list[int]:
        """Return the number of calls that changed shares, of each machine."""
        return [revision(f"{agent.host}:{agent.port}") for agent in self.rack.agents]


def check_long_pauses(folder: Path, part: str) -> None:
    """Start a rack, and check that no pause of a part resets a partition. One of PARTS, and each of LONG_PAUSES."""
    rack = PausedRack(folder)
    try:
        for seconds in LONG_PAUSES:
            rack.pause(part, seconds)
            rack.assert_no_reset()
    finally:
        rack.close()


def revision(address: str) -> int:
    """Return the revision in the first event of an agent."""
    with grpc.insecure_channel(address) as channel:
        events = agent_api.stub(channel, "AgentService").Watch(agent_api.WatchRequest(), timeout=20)
        return int(next(iter(events)).revision)
