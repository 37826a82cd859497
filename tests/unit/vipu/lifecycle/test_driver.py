# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver with records in memory: agents that change while an operation is in progress."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from typing import Any

import grpc
import pytest

from openipu.vipu.domain import partition_state
from openipu.vipu.domain.deployment import Deployment
from openipu.vipu.domain.model import Delete, Kind, Operation, Partition, Put, ReadyState
from openipu.vipu.domain.state import State
from openipu.vipu.fleet.agent_messages import AgentEvent, Fault, HeldShare, Revision, ShareResult
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.status import AgentState, AgentStatus
from openipu.vipu.lifecycle import driver as driver_module
from openipu.vipu.lifecycle.agent_queue import PartitionOperation
from openipu.vipu.lifecycle.driver import Driver
from openipu.vipu.lifecycle.interface import LifecycleOptions
from tests.unit.vipu.domain.rules_support import partition, pod

OURS, OTHER = "a" * 32, "b" * 32
IPUS = frozenset(range(4))
DEPLOYMENT = Deployment(OURS)


class Records:
    """Records in memory, which commit at once and notify the driver."""

    def __init__(self, state: State, deployment: Deployment) -> None:
        self.state = state
        self.deployment = deployment
        self.driver: Any = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[State]:
        yield self.state

    def submit(self, command: Callable[[State], tuple[Any, Any]]) -> Future[Any]:
        done: Future[Any] = Future()
        changes, result = command(self.state)
        self.state.apply(changes)
        done.set_result(result)
        for change in changes:
            if isinstance(change, Delete):
                self.driver.record_deleted(change.id)
            else:
                self.driver.reconcile(change.record.id)
        return done


class Stub:
    """Agent that never responds, or fails each call. ``resets``: flags of the shares that it has received."""

    def __init__(self) -> None:
        self.resets: list[bool] = []
        self.releases = 0
        self.failure: Exception | None = None

    async def Configure(self, request: Any, timeout: float) -> None:  # noqa: N802 - name of the call
        self.resets += [share.reset for share in request.shares]
        await self._respond()

    async def Release(self, request: Any, timeout: float) -> None:  # noqa: N802 - name of the call
        self.releases += 1
        await self._respond()

    async def _respond(self) -> None:
        if self.failure is not None:
            raise self.failure
        await asyncio.Event().wait()


class Fleet:
    """A driver with its agents ag01 … and one partition on all of their IPUs."""

    def __init__(self, machines: int, size: int, deployment: Deployment) -> None:
        self.state = pod(machines)
        self.partition = partition(self.state, "p", size)
        self.records = Records(self.state, deployment)
        records: Any = self.records
        self.driver = self.records.driver = Driver(records, LifecycleOptions(), asyncio.get_running_loop())
        for agent in list(self.state.agents.values()):
            connection = AgentConnection(agent, 2.0, None, deployment)
            connection.stub = Stub()
            self.driver.supervisor.connections[agent.id] = connection
            self.driver._operations.add_queue(connection)

    def connection(self, agent_id: str) -> AgentConnection:
        return self.driver.supervisor.connections[agent_id]

    def up(self, agent_id: str, *shares: HeldShare) -> None:
        """Report an agent as up, with shares."""
        connection = self.connection(agent_id)
        connection.set_status(AgentStatus(AgentState.UP))
        self.driver.supervisor.unavailable -= {agent_id}
        self.driver.agent_up(connection)
        connection.state = Revision(connection.state.boot_id, 0)
        self.report(agent_id, 0, *shares)

    def down(self, agent_id: str) -> None:
        """Report an agent as down."""
        connection = self.connection(agent_id)
        connection.set_status(AgentStatus(AgentState.DOWN, "it sends no heartbeats"))
        self.driver.supervisor.unavailable |= {agent_id}
        self.driver.agent_down(connection)

    def report(self, agent_id: str, revision: int, *shares: HeldShare, faults: tuple[Fault, ...] = ()) -> None:
        """Send an event of an agent."""
        self.driver.agent_event(self.connection(agent_id), AgentEvent("boot", revision, shares, faults))

    def configured(self, operation: PartitionOperation, agent_id: str, revision: int) -> None:
        """Send the reply of an agent that has configured its share."""
        self.connection(agent_id).record_revision(Revision("boot", revision))
        devices: Any = tuple(object() for _ in operation.indices[agent_id])
        self.driver._operations.share_response(operation, agent_id, ShareResult("", devices))

    def begin(self) -> PartitionOperation:
        """Begin the operation of the partition."""
        self.driver.reconcile("p")
        operation = self.driver._operations.get("p")
        assert operation is not None
        return operation

    @property
    def record(self) -> Partition:
        return self.state.partitions["p"]


def run(
    scenario: Callable[[Fleet], Awaitable[None]],
    machines: int = 2,
    size: int = 8,
    deployment: Deployment = DEPLOYMENT,
) -> None:
    """Run a scenario in an event loop, with all agents up."""

    async def body() -> None:
        fleet = Fleet(machines, size, deployment)
        await scenario(fleet)
        await fleet.driver.stop()

    asyncio.run(body())


async def settle() -> None:
    """Wait until the results of all responses are written."""
    for _ in range(20):
        await asyncio.sleep(0)


def share() -> HeldShare:
    return HeldShare("p", IPUS, OURS, 1)


def test_a_partition_with_an_agent_that_went_down_is_unreachable() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.up("ag01")
        fleet.up("ag02")
        operation = fleet.begin()
        fleet.configured(operation, "ag01", 1)
        fleet.down("ag01")
        fleet.configured(operation, "ag02", 1)
        await settle()
        assert (fleet.record.ready, fleet.record.operation) == (ReadyState.ERROR, Operation.UNREACHABLE)
        assert "'ag01'" in fleet.record.errors[0]

    run(scenario)


def test_a_fault_during_the_configuration_of_another_agent_fails_the_operation() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.up("ag01")
        fleet.up("ag02")
        operation = fleet.begin()
        fleet.configured(operation, "ag01", 1)
        fleet.report("ag01", 1, share(), faults=(Fault("p", 0, "link lost"),))
        fleet.driver._recovery.recover = lambda id: None  # keeps the failure
        fleet.configured(operation, "ag02", 1)
        await settle()
        assert (fleet.record.operation, fleet.record.errors) == (
            Operation.FAILED,
            ("IPU 0 of agent 'ag01' failed: link lost.",),
        )

    run(scenario)


def test_a_fault_before_the_configuration_is_repaired_by_it() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.up("ag01")
        fleet.up("ag02")
        operation = fleet.begin()
        fleet.report("ag01", 0, share(), faults=(Fault("p", 0, "link lost"),))
        fleet.configured(operation, "ag01", 1)
        fleet.report("ag01", 0, share(), faults=(Fault("p", 1, "late event"),))
        fleet.configured(operation, "ag02", 1)
        await settle()
        assert fleet.record.operation is Operation.IDLE

    run(scenario)


def test_a_repeated_configuration_resets_again() -> None:
    async def scenario(fleet: Fleet) -> None:
        stub = fleet.connection("ag01").stub
        stub.failure = failure(grpc.StatusCode.UNAVAILABLE)
        fleet.up("ag01")
        fleet.begin()
        await settle()
        fleet.driver._operations.queues["ag01"].retry_now()
        await settle()
        assert stub.resets == [True, True]  # the first one may not have arrived

    run(scenario, 1, 1)


def failure(code: grpc.StatusCode) -> Exception:
    """Return the error of a failed call."""
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "no connection")


def test_the_quarantine_of_an_agent_that_is_down_stays() -> None:
    other = HeldShare("x", frozenset({3}), OTHER, 1)

    async def scenario(fleet: Fleet) -> None:
        fleet.up("ag01", other)
        fleet.driver.reconcile("p")
        release = asyncio.ensure_future(fleet.driver.release_quarantine("ag01", "x"))
        await settle()
        fleet.down("ag01")
        fleet.records.submit(lambda state: ([Delete(Kind.PARTITION, "p")], None))
        await settle()
        assert not release.done()
        assert fleet.driver.quarantine.ipus == {"ag01": 0b1000}
        fleet.up("ag01", other)
        assert [each.releasing for each in fleet.driver.quarantine.shares()] == [True]
        fleet.report("ag01", 1)
        assert [each.partition_id for each in await release] == ["x"]

    run(scenario, 1, 1, Deployment(OURS, 5, 4))


def test_a_removed_agent_is_not_called_after_its_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "RETIRE_SECONDS", 0.05)

    async def scenario(fleet: Fleet) -> None:
        fleet.up("ag01")
        queue = fleet.driver._operations.queues["ag01"]
        queue.release("gone")
        await settle()
        fleet.driver.supervisor._tasks["ag01"] = asyncio.ensure_future(asyncio.sleep(60))
        fleet.driver.drop_agent("ag01")
        await asyncio.gather(*fleet.driver._retiring)
        await settle()
        stub: Any = queue.connection.stub
        assert (stub.releases, queue.task, queue._retry) == (1, None, None)

    run(scenario, 1, 1)


def test_releases_of_a_removed_agent_are_repeated_while_there_is_time() -> None:
    async def scenario(fleet: Fleet) -> None:
        stub: Any = fleet.connection("ag01").stub
        stub.failure = failure(grpc.StatusCode.UNAVAILABLE)
        fleet.up("ag01")
        queue = fleet.driver._operations.queues["ag01"]
        queue.release("gone")
        await settle()
        finishing = asyncio.ensure_future(queue.finish())
        await settle()
        assert stub.releases == 2  # at once, not after the pause
        assert not finishing.done()
        queue.close()
        finishing.cancel()

    run(scenario, 1, 1)


def test_a_removal_whose_release_was_rejected_already_retries_it_at_once() -> None:
    async def scenario(fleet: Fleet) -> None:
        fleet.up("ag01", share())
        stub: Any = fleet.connection("ag01").stub
        stub.failure = failure(grpc.StatusCode.INTERNAL)
        record = partition_state.removing(fleet.record)
        fleet.state.apply([Put(record)])
        fleet.begin()
        await settle()
        assert stub.releases == 1
        for releases in (2, 3):
            done: Future[None] = Future()
            fleet.driver.await_removal(record, done)
            await settle()
            assert "Agent 'ag01' rejected the release: no connection" in str(done.exception(0))
            assert stub.releases == releases
        operation = fleet.driver._operations.get("p")
        assert operation is not None
        assert len(operation.rejected) == 1

    run(scenario, machines=1, size=4)


def test_the_return_of_all_agents_at_once_resets_a_partition_once() -> None:
    agents = [f"ag{number:02}" for number in range(1, 9)]
    resets: list[int] = []

    async def scenario(fleet: Fleet) -> None:
        for agent_id in agents:
            fleet.up(agent_id)
        operation = fleet.begin()
        for agent_id in agents:
            fleet.configured(operation, agent_id, 1)
        await settle()
        assert fleet.record.operation is Operation.IDLE
        calls = [len(fleet.connection(agent_id).stub.resets) for agent_id in agents]
        for agent_id in agents:
            fleet.down(agent_id)
        await settle()
        assert fleet.record.operation is Operation.UNREACHABLE
        for agent_id in agents:
            fleet.up(agent_id)  # without its share, as after a power failure
        await settle()
        assert fleet.record.operation is Operation.RESETTING
        assert fleet.record.retries == 1
        resets.extend(
            len(fleet.connection(agent_id).stub.resets) - calls[index] for index, agent_id in enumerate(agents)
        )

    run(scenario, machines=8, size=32)
    assert resets == [1] * 8
