# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition life, agent supervision and discovery, in an event loop in a separate thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

import grpc
import structlog

from openipu.process.limits import raise_file_limit
from openipu.vipu.agent_api.contract import agent as contract
from openipu.vipu.cluster_test.model import Test
from openipu.vipu.cluster_test.results import Results, Run
from openipu.vipu.cluster_test.runs import Runs
from openipu.vipu.domain import partition_state, rules
from openipu.vipu.domain.context import Allowed, Context
from openipu.vipu.domain.errors import RuleError, RuleViolation, missing_or_hidden, quoted
from openipu.vipu.domain.model import Agent, Allocation, Change, Cluster, Delete, Kind, Partition, Put, Record
from openipu.vipu.domain.specs import Removal
from openipu.vipu.domain.state import State
from openipu.vipu.fleet import agent_messages
from openipu.vipu.fleet.agent_messages import InvalidMessageError
from openipu.vipu.fleet.connection import AgentConnection
from openipu.vipu.fleet.discovery import Discovery
from openipu.vipu.fleet.status import AgentStatus, DiscoveredAgent, QuarantinedShare
from openipu.vipu.lifecycle.driver import Driver
from openipu.vipu.lifecycle.inbox import Inbox
from openipu.vipu.lifecycle.interface import LifecycleOptions
from openipu.vipu.lifecycle.loop_calls import LoopCalls
from openipu.vipu.lifecycle.meters import LifeMeters
from openipu.vipu.lifecycle.ownership import take_over
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.storage.interface import Records, StoppedError

ATTRIBUTES_TIMEOUT = 5.0  # seconds
ATTRIBUTES_CALLS = 64  # concurrent

Attributes = dict[str, dict[int, dict[str, str]]]


_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")


class LifecycleService:
    """Implementation of ``interface.Lifecycle``. Methods with a leading underscore run in the event loop."""

    def __init__(self, records: Records, options: LifecycleOptions) -> None:
        """Create all parts. ``start`` begins the work."""
        self._records = records
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="lifecycle", daemon=True)
        self._calls = LoopCalls(self._loop)
        self._driver = Driver(records, options, self._loop)
        self._tests = Runs(self._loop, lambda: self._driver.supervisor.connections)
        self._meters = LifeMeters()
        self._inbox = Inbox(records, self._loop, self._handle)
        self._discovery: Discovery | None = None

    # -- for the services, in any thread

    @property
    def meters(self) -> list[Meters]:
        """Instruments of the partition life and of the calls to agents."""
        return [self._meters, self._driver.meters]

    def start(self) -> None:
        """Start to supervise all agents and resume interrupted operations. Raises OSError with a message."""
        options = self._options
        if options.discovery_interfaces:
            self._discovery = Discovery(options.discovery_interfaces, options.discovery_group, options.discovery_port)
        self._records.subscribe(self._inbox.put)
        self._thread.start()
        self._loop.call_soon_threadsafe(self._begin)

    def stop(self) -> None:
        """End all work at once. Unfinished operations resume at the next start."""
        self._inbox.stop()
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._tests.stop(), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._driver.stop(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if self._discovery:
            self._discovery.close()
            self._discovery = None

    def agent_status(self, agent_id: str) -> AgentStatus:
        """Return the status of an agent, UNKNOWN for one that is not registered."""
        return self._driver.supervisor.status(agent_id)

    def take_over(self, agent_ids: Iterable[str], other_agents: bool = False) -> Future[dict[str, RuleError]]:
        """Make this deployment the owner of agents. Return the errors of those that were not taken over."""
        return self._calls.submit(take_over(self._driver.supervisor, list(agent_ids), other_agents))

    def unavailable(self) -> frozenset[str]:
        """Return the agents that are Down."""
        return self._driver.supervisor.unavailable

    def quarantined(self) -> Mapping[str, int]:
        """Return agent -> one bit for each IPU in quarantine."""
        return self._driver.quarantine.ipus

    def quarantine(self) -> Future[list[QuarantinedShare]]:
        """Return the shares in quarantine, sorted by agent and partition."""
        return self._calls.submit(self._quarantine())

    def release_quarantine(self, agent_id: str, partition_id: str) -> Future[list[QuarantinedShare]]:
        """Release a share in quarantine, or all shares of an agent; return them."""
        return self._calls.submit(self._driver.release_quarantine(agent_id, partition_id))

    def cluster_under_test(self) -> str:
        """Return the id of the cluster under test, empty for none."""
        return self._tests.cluster_under_test

    def start_cluster_test(self, cluster_id: str, tests: tuple[Test, ...]) -> Future[Run]:
        """Start tests in this order."""
        return self._tests.start(self._records, cluster_id, tests)

    def cluster_test(self) -> Run | None:
        """Return the last run of any cluster, None for none."""
        return self._tests.last

    def cluster_test_results(self) -> Mapping[str, Results]:
        """Return the results of all clusters that were tested since the start, by cluster."""
        return self._tests.results

    def wait_cluster_test(self, known: int, seconds: float) -> Run | None:
        """Return the last run when it has progressed, or after ``seconds``."""
        return self._tests.wait(known, seconds)

    def stop_cluster_test(self, run_id: str = "") -> Future[Run | None]:
        """Stop the run in progress and return the last run."""
        return self._calls.submit(self._tests.stop(run_id))

    def remove_partition(self, id: str, force: bool, allowed: Allowed | None = None) -> Future[None]:
        """Remove a partition. With ``force``, agents that are up release it afterwards."""

        def command(state: State) -> tuple[Sequence[Change], Partition | None]:
            context = Context(self.unavailable(), allowed)
            changes = rules.remove(state, Removal(Kind.PARTITION, id, force), context)
            if force:
                return changes, None
            record = partition_state.removing(state.partitions[id])
            return [] if record is state.partitions[id] else [Put(record)], record

        done: Future[None] = Future()

        def durable(submitted: Future[Partition | None]) -> None:
            if error := submitted.exception():
                done.set_exception(error)
            elif (record := submitted.result()) is None:
                done.set_result(None)
            else:
                try:
                    self._loop.call_soon_threadsafe(self._driver.await_removal, record, done)
                except RuntimeError:  # the loop is closed
                    done.set_exception(StoppedError())

        self._records.submit(command).add_done_callback(durable)
        return done

    def reset_partition(self, id: str, relocatable: bool, allowed: Allowed | None = None) -> Future[None]:
        """Reset a partition. With ``relocatable``, move it to free IPUs if a machine is Down or out of service."""

        def command(state: State) -> tuple[Sequence[Change], None]:
            record = state.partitions.get(id)
            context = Context(self.unavailable(), allowed, quarantined=self.quarantined())
            try:
                if record is None or not context.may_use(record.allocation):
                    raise missing_or_hidden(Kind.PARTITION, id, context)
                ipus = None
                unusable = context.unavailable | state.out_of_service
                if relocatable and any(agent in unusable for agent, _ in state.machines_of(record)):
                    ipus = partition_state.find_relocation(state, record, context.unavailable, context.quarantined)
                return [Put(partition_state.reset(record, ipus))], None
            except RuleViolation as violation:
                message = f"Cannot reset partition {quoted(id)}: {violation.reason}."
                raise RuleError(violation.code, message) from None

        return self._records.submit(command)

    def ipu_attributes(self, agent_ids: Iterable[str]) -> Future[Attributes]:
        """Return attributes by agent, IPU number and name. Agents that do not respond are omitted."""
        return self._calls.submit(self._ipu_attributes(list(agent_ids)))

    def discovered(self) -> list[DiscoveredAgent]:
        """Return the agents that announced themselves recently."""
        return self._discovery.discovered() if self._discovery else []

    # -- the event loop

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            # This also fails the removals that became durable during the stop.
            self._loop.run_until_complete(self._calls.end())
        finally:
            self._loop.close()

    def _begin(self) -> None:
        state = self._records.state
        raise_file_limit()
        if self._discovery:
            self._discovery.listen()
        records: list[Record] = [*state.agents.values(), *state.partitions.values()]
        for record in records:
            self._inbox.handle(Put(record))

    def _handle(self, change: Change, committed: float) -> None:
        """Handle a change that was committed at this monotonic time."""
        if isinstance(change, Delete):
            if change.kind is Kind.PARTITION:
                self._driver.record_deleted(change.id)
                self._meters.delete(change.id, committed)
            elif change.kind is Kind.AGENT:
                self._driver.drop_agent(change.id)
            elif change.kind is Kind.CLUSTER:
                self._tests.drop_results(change.id)
        elif isinstance(change.record, Partition):
            self._driver.reconcile(change.record.id)
            self._meters.put(change.record, committed)
        elif isinstance(change.record, Agent):
            self._driver.add_agent(change.record)
            self._driver.capacity_changed()
        elif isinstance(change.record, Allocation | Cluster):
            self._driver.capacity_changed()

    async def _quarantine(self) -> list[QuarantinedShare]:
        return self._driver.quarantine.shares()

    async def _ipu_attributes(self, agent_ids: Sequence[str]) -> Attributes:
        limit = asyncio.Semaphore(ATTRIBUTES_CALLS)

        async def read(connection: AgentConnection) -> tuple[str, dict[int, dict[str, str]] | None]:
            async with limit:
                try:
                    reply = await connection.call_if_up(
                        lambda it: it.stub.ListIpuAttributes(
                            contract.ListIpuAttributesRequest(), timeout=ATTRIBUTES_TIMEOUT
                        )
                    )
                except (ConnectionError, grpc.aio.AioRpcError):
                    return connection.id, None
            try:
                return connection.id, agent_messages.attributes(reply)
            except InvalidMessageError as error:
                _log.warning("invalid attributes of IPUs", agent=connection.id, reason=str(error))
                return connection.id, None

        connections = [
            connection
            for id in dict.fromkeys(agent_ids)
            if (connection := self._driver.supervisor.connections.get(id)) and connection.up
        ]
        responses = await asyncio.gather(*map(read, connections))
        return {id: attributes for id, attributes in responses if attributes is not None}
