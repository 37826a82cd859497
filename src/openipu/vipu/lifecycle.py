# SPDX-License-Identifier: GPL-3.0-or-later
"""Partition life, agent supervision and discovery, in an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

import grpc

from openipu.limits import raise_file_limit
from openipu.vipu import life, rules
from openipu.vipu.agent.contract import agent as contract
from openipu.vipu.agents import Link
from openipu.vipu.checks import Context, Refused, RuleError, not_there, shown
from openipu.vipu.cluster_test.plan import Test
from openipu.vipu.cluster_test.runs import Results, Run, Runs
from openipu.vipu.discovery import Discovery
from openipu.vipu.driver import Driver
from openipu.vipu.life_meters import LifeMeters
from openipu.vipu.metrics.meters import Meters
from openipu.vipu.model import Agent, Change, Delete, Kind, Partition, Put, State
from openipu.vipu.ports import AgentStatus, DiscoveredAgent, LifecycleOptions, Records, StoppedError
from openipu.vipu.specs import Removal

ATTRIBUTES_TIMEOUT = 5.0  # seconds
ATTRIBUTES_CALLS = 64  # at once

Attributes = dict[str, dict[int, dict[str, str]]]


class Lifecycle:
    """See ``ports.Lifecycle``. Methods with a leading underscore belong to the event loop."""

    def __init__(self, records: Records, options: LifecycleOptions) -> None:
        """Nothing happens before ``start``."""
        self._records = records
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="lifecycle", daemon=True)
        self._driver = Driver(records, options, self._loop)
        self._tests = Runs(self._loop, lambda: self._driver.supervisor.links)
        self._meters = LifeMeters()
        self._inbox: deque[tuple[float, Sequence[Change]]] = deque()  # and when they were committed
        self._reading = False  # it is going to read the inbox
        self._stopped = False
        self._discovery: Discovery | None = None

    # -- for the services, in any thread

    @property
    def meters(self) -> list[Meters]:
        """What is counted here."""
        return [self._meters, self._driver.meters]

    def start(self) -> None:
        """Supervise all agents and take up what was interrupted. Raises OSError with a sentence."""
        options = self._options
        if options.discovery_interfaces:
            self._discovery = Discovery(options.discovery_interfaces, options.discovery_group, options.discovery_port)
        self._records.subscribe(self._committed)
        self._thread.start()
        self._loop.call_soon_threadsafe(self._begin)

    def stop(self) -> None:
        """End all work at once, leaving operations to be taken up at the next start."""
        self._stopped = True
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._tests.stop(), self._loop).result()
            asyncio.run_coroutine_threadsafe(self._driver.stop(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if self._discovery:
            self._discovery.close()
            self._discovery = None

    def agent_status(self, agent_id: str) -> AgentStatus:
        """What is known of an agent; UNKNOWN for a stranger."""
        return self._driver.supervisor.status(agent_id)

    def unavailable(self) -> frozenset[str]:
        """The agents that are Down."""
        return self._driver.supervisor.unavailable

    def under_test(self) -> str:
        """The cluster that is tested now; empty for none."""
        return self._tests.under_test

    def start_cluster_test(self, cluster_id: str, tests: tuple[Test, ...]) -> Future[Run]:
        """Begin tests, in that order."""
        return self._records.submit(lambda state: ([], self._tests.begin(state, cluster_id, tests)))

    def cluster_test(self) -> Run | None:
        """The last run, of whatever cluster."""
        return self._tests.last

    def cluster_test_results(self) -> Mapping[str, Results]:
        """See ``ports.Lifecycle``."""
        return self._tests.results

    def wait_cluster_test(self, known: int, seconds: float) -> Run | None:
        """See ``ports.Lifecycle``."""
        return self._tests.wait(known, seconds)

    def stop_cluster_test(self, run_id: str = "") -> Future[Run | None]:
        """See ``ports.Lifecycle``."""
        return asyncio.run_coroutine_threadsafe(self._tests.stop(run_id), self._loop)

    def remove_partition(self, id: str, force: bool, allowed: frozenset[str] | None = None) -> Future[None]:
        """See ``ports.Lifecycle``. With ``force`` its agents are told afterwards, those that can be."""

        def command(state: State) -> tuple[Sequence[Change], Partition | None]:
            context = Context(self.unavailable(), allowed)
            changes = rules.remove(state, Removal(Kind.PARTITION, id, force), context)
            if force:
                return changes, None
            record = life.removing(state.partitions[id])
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

    def reset_partition(self, id: str, relocatable: bool, allowed: frozenset[str] | None = None) -> Future[None]:
        """See ``ports.Lifecycle``. It moves when one of its machines is down, and another place is free."""

        def command(state: State) -> tuple[Sequence[Change], None]:
            record = state.partitions.get(id)
            context = Context(self.unavailable(), allowed)
            try:
                if record is None or not context.may_use(record.allocation):
                    raise not_there(Kind.PARTITION, id, context)
                ipus = None
                if relocatable and any(agent in context.unavailable for agent, _ in state.machines_of(record)):
                    ipus = life.other_place(state, record, context.unavailable)
                return [Put(life.reset(record, ipus))], None
            except Refused as refusal:
                sentence = f"Cannot reset partition {shown(id)}: {refusal.reason}."
                raise RuleError(refusal.code, sentence) from None

        return self._records.submit(command)

    def ipu_attributes(self, agent_ids: Iterable[str]) -> Future[Attributes]:
        """See ``ports.Lifecycle``."""
        return asyncio.run_coroutine_threadsafe(self._ipu_attributes(list(agent_ids)), self._loop)

    def discovered(self) -> list[DiscoveredAgent]:
        """The agents that were heard lately."""
        return self._discovery.discovered() if self._discovery else []

    # -- the event loop

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            # Removals that became durable at the last moment hear that nobody will do them.
            self._loop.run_until_complete(asyncio.sleep(0))
        finally:
            self._loop.close()

    def _begin(self) -> None:
        state = self._records.state
        raise_file_limit()
        if self._discovery:
            self._discovery.listen()
        for agent in list(state.agents.values()):
            self._driver.add_agent(agent)
        for record in list(state.partitions.values()):
            self._meters.put(record, time.monotonic())
            self._driver.look(record.id)

    def _committed(self, changes: Sequence[Change]) -> None:
        """Called in the writer thread."""
        self._inbox.append((time.monotonic(), changes))
        if not self._reading and not self._stopped:
            self._reading = True
            with contextlib.suppress(RuntimeError):  # it was stopped this moment
                self._loop.call_soon_threadsafe(self._read_inbox)

    def _read_inbox(self) -> None:
        self._reading = False
        while self._inbox:
            now, changes = self._inbox.popleft()
            for change in changes:
                if isinstance(change, Delete):
                    if change.kind is Kind.PARTITION:
                        self._meters.delete(change.id, now)
                        self._driver.forget(change.id)
                    elif change.kind is Kind.AGENT:
                        self._driver.drop_agent(change.id)
                elif isinstance(change.record, Partition):
                    self._meters.put(change.record, now)
                    self._driver.look(change.record.id)
                elif isinstance(change.record, Agent):
                    self._driver.add_agent(change.record)

    async def _ipu_attributes(self, agent_ids: Sequence[str]) -> Attributes:
        turns = asyncio.Semaphore(ATTRIBUTES_CALLS)

        async def ask(link: Link) -> tuple[str, dict[int, dict[str, str]] | None]:
            async with turns:
                try:
                    reply = await link.stub.ListIpuAttributes(
                        contract.ListIpuAttributesRequest(), timeout=ATTRIBUTES_TIMEOUT
                    )
                except grpc.aio.AioRpcError:
                    return link.id, None
            return link.id, {ipu: dict(entry.attributes) for ipu, entry in sorted(reply.ipus.items())}

        links = [link for id in dict.fromkeys(agent_ids) if (link := self._driver.supervisor.links.get(id)) and link.up]
        answers = await asyncio.gather(*map(ask, links))
        return {id: attributes for id, attributes in answers if attributes is not None}
