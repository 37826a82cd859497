# SPDX-License-Identifier: GPL-3.0-or-later
"""The admin API, for administrators only, and what tenants see of allocations.

Methods as in ``services_public``. That a caller is an administrator is checked before, in
``services_guard``.
"""

from __future__ import annotations

from typing import NoReturn

from ansible_collections.openipu.pod.plugins.module_utils.vipu.contract import admin

from openipu.vipu import auth, rules
from openipu.vipu import services_messages as messages
from openipu.vipu import services_tests as test_messages
from openipu.vipu.auth import Caller
from openipu.vipu.batch import Batch, BatchResult, apply_batch, check_length
from openipu.vipu.checks import Code, Context, RuleError, not_there, shown
from openipu.vipu.controller import Controller
from openipu.vipu.model import Agent, Allocation, Change, Kind, State, in_order
from openipu.vipu.ports import Lifecycle
from openipu.vipu.services_guard import large_requests, waits_for_agents
from openipu.vipu.services_messages import Message
from openipu.vipu.specs import Outcome, PartitionSpec, Removal, Spec

_LONGEST_WAIT = 30_000  # milliseconds, for news of a cluster test
_MAX_SIZES = 64  # of one CountFits; sizes are powers of two


class AdminService:
    """Agents, clusters, allocations and users, one by one or a whole POD at once."""

    def __init__(self, controller: Controller, lifecycle: Lifecycle, max_retries: int) -> None:
        """``max_retries``: automatic resets that a new partition may have."""
        self._controller = controller
        self._lifecycle = lifecycle
        self._max_retries = max_retries

    @large_requests
    def Apply(self, request: Message, caller: Caller) -> Message:
        """A whole POD, all or none."""
        check_length(messages.batch_length(request))  # before any work goes into its items
        users, keys = [], {}
        for message in request.users:
            spec = messages.user_spec(message)
            # A key for each: which users are new is known only when the batch is applied.
            user, key = auth.new_user(spec.id, spec.role, spec.allocations)
            users.append(user)
            keys[spec.id] = key
        wish = messages.batch(request, users)
        write = not request.validate_only

        def command(state: State) -> tuple[list[Change], BatchResult]:
            result = apply_batch(state, wish, self._context())
            return result.changes if write else [], result

        result: BatchResult = self._controller.submit(command).result()
        applied = result.applied and write
        created = {item.id for item in result.results if item.kind is Kind.USER and item.outcome is Outcome.CREATED}
        told = {id: key for id, key in keys.items() if id in created} if applied else {}
        return messages.batch_message(result, applied=applied, access_keys=told)

    def CreateAgent(self, request: Message, caller: Caller) -> Message:
        """Register an agent."""
        self._create(messages.agent_spec(request.spec))
        return admin.CreateAgentReply()

    def GetAgent(self, request: Message, caller: Caller) -> Message:
        """An agent with all that its machine told of itself."""
        with self._controller.reading() as state:
            agent = state.agents.get(request.id)
            if agent is None:
                _missing(Kind.AGENT, request.id)
            return admin.GetAgentReply(agent=self._agent(state, agent, facts=True))

    def ListAgents(self, request: Message, caller: Caller) -> Message:
        """All agents, by id."""
        with self._controller.reading() as state:
            agents = [self._agent(state, agent, facts=False) for agent in in_order(state.agents)]
        return admin.ListAgentsReply(agents=agents)

    def RemoveAgent(self, request: Message, caller: Caller) -> Message:
        """Forget an agent."""
        return self._remove(Kind.AGENT, request)

    def ListDiscoveredAgents(self, request: Message, caller: Caller) -> Message:
        """The agents that told of themselves lately."""
        found = self._lifecycle.discovered()
        endpoints = self._controller.state.endpoints
        return admin.ListDiscoveredAgentsReply(
            agents=[
                messages.discovered_message(each, endpoints.get((each.host.lower(), each.port), "")) for each in found
            ]
        )

    def AddDiscoveredAgents(self, request: Message, caller: Caller) -> Message:
        """Register those of them that are not registered, all or none."""
        found = [Agent(each.auto_id, each.host, each.port) for each in self._lifecycle.discovered()]

        def command(state: State) -> tuple[list[Change], list[str]]:
            new = tuple(agent for agent in found if (agent.host.lower(), agent.port) not in state.endpoints)
            result = apply_batch(state, Batch(agents=new), self._context())
            for item in result.results:
                if item.code is not None:
                    raise RuleError(item.code, item.error)
            return result.changes, [agent.id for agent in new]

        return admin.AddDiscoveredAgentsReply(agent_ids=self._controller.submit(command).result())

    def CreateCluster(self, request: Message, caller: Caller) -> Message:
        """Make a cluster of agents."""
        self._create(messages.cluster_spec(request.spec))
        return admin.CreateClusterReply()

    def GetCluster(self, request: Message, caller: Caller) -> Message:
        """A cluster."""
        with self._controller.reading() as state:
            cluster = state.clusters.get(request.id)
            if cluster is None:
                _missing(Kind.CLUSTER, request.id)
            allocations = sorted(state.allocations_in.get(cluster.id, ()))
        return admin.GetClusterReply(cluster=messages.cluster_message(cluster, allocations))

    def ListClusters(self, request: Message, caller: Caller) -> Message:
        """All clusters, by id."""
        with self._controller.reading() as state:
            clusters = [
                messages.cluster_message(cluster, sorted(state.allocations_in.get(cluster.id, ())))
                for cluster in in_order(state.clusters)
            ]
        return admin.ListClustersReply(clusters=clusters)

    def RemoveCluster(self, request: Message, caller: Caller) -> Message:
        """Remove a cluster; its agents stay."""
        return self._remove(Kind.CLUSTER, request)

    def CreateAllocation(self, request: Message, caller: Caller) -> Message:
        """Make an allocation, and tell which machines it has."""
        spec = messages.allocation_spec(request.spec)
        self._create(spec)
        # Somebody may have removed it again meanwhile, which is no reason to fail.
        with self._controller.reading() as state:
            allocation = state.allocations.get(spec.id)
            message = allocation and _allocation(state, allocation)
        return admin.CreateAllocationReply(allocation=message)

    def RemoveAllocation(self, request: Message, caller: Caller) -> Message:
        """Remove an allocation; its machines are free for others."""
        return self._remove(Kind.ALLOCATION, request)

    def CreateUser(self, request: Message, caller: Caller) -> Message:
        """Make a user, and tell its access key this once."""
        spec = messages.user_spec(request.spec)
        user, key = auth.new_user(spec.id, spec.role, spec.allocations)
        self._create(user)
        return admin.CreateUserReply(access_key=key)

    def ListUsers(self, request: Message, caller: Caller) -> Message:
        """All users, by id, without their keys."""
        return admin.ListUsersReply(users=map(messages.user_message, in_order(self._controller.state.users)))

    def RemoveUser(self, request: Message, caller: Caller) -> Message:
        """Remove a user; what it made stays."""
        return self._remove(Kind.USER, request)

    def _agent(self, state: State, agent: Agent, *, facts: bool) -> Message:
        return messages.agent_message(
            agent,
            self._lifecycle.agent_status(agent.id),
            state.cluster_of.get(agent.id, ""),
            state.allocation_of.get(agent.id, ""),
            facts=facts,
        )

    def StartClusterTest(self, request: Message, caller: Caller) -> Message:
        """Begin a run of cluster tests."""
        tests = test_messages.tests(request)
        run = self._lifecycle.start_cluster_test(request.cluster_id, tests).result()
        return admin.StartClusterTestReply(run=test_messages.run(run))

    @waits_for_agents
    def GetClusterTest(self, request: Message, caller: Caller) -> Message:
        """The last run; with a wait, as soon as there is news of it."""
        seconds = min(request.wait_milliseconds, _LONGEST_WAIT) / 1000
        test_messages.check_last(request.run_id, self._lifecycle.cluster_test())
        run = self._lifecycle.wait_cluster_test(request.known_results, seconds)
        test_messages.check_last(request.run_id, run)
        return admin.GetClusterTestReply(run=test_messages.run(run))

    @waits_for_agents
    def StopClusterTest(self, request: Message, caller: Caller) -> Message:
        """Stop the run that is in progress; when none is, nothing happens."""
        last = self._lifecycle.stop_cluster_test(request.run_id).result()
        test_messages.check_last(request.run_id, last)
        return admin.StopClusterTestReply(run=test_messages.run(last))

    def _create(self, spec: Spec) -> None:
        def command(state: State) -> tuple[list[Change], None]:
            return rules.create(state, spec, self._context()), None

        self._controller.submit(command).result()

    def _remove(self, kind: Kind, request: Message) -> Message:
        removal = Removal(kind, request.id, request.force)

        def command(state: State) -> tuple[list[Change], None]:
            return rules.remove(state, removal, self._context()), None

        self._controller.submit(command).result()
        return admin.RemoveReply()

    def _context(self) -> Context:
        lifecycle = self._lifecycle
        return Context(lifecycle.unavailable(), max_retries=self._max_retries, under_test=lifecycle.under_test())


class TenantService:
    """Allocations, what is free in them, and options of their partitions, for the users of each."""

    def __init__(self, controller: Controller, lifecycle: Lifecycle) -> None:
        """See the class."""
        self._controller = controller
        self._lifecycle = lifecycle

    def GetAllocation(self, request: Message, caller: Caller) -> Message:
        """An allocation."""
        context = Context(allowed=caller.allowed)
        with self._controller.reading() as state:
            allocation = state.allocations.get(request.id)
            if allocation is None or not context.may_use(allocation.id):
                _missing(Kind.ALLOCATION, request.id, context)
            return admin.GetAllocationReply(allocation=_allocation(state, allocation))

    def ListAllocations(self, request: Message, caller: Caller) -> Message:
        """All allocations that the caller may use, by id."""
        context = Context(allowed=caller.allowed)
        with self._controller.reading() as state:
            found = [_allocation(state, each) for each in in_order(state.allocations) if context.may_use(each.id)]
        return admin.ListAllocationsReply(allocations=found)

    def CountFits(self, request: Message, caller: Caller) -> Message:
        """How many more partitions of each size fit now."""
        context = Context(self._lifecycle.unavailable(), caller.allowed)
        sizes = list(dict.fromkeys(request.sizes))
        if len(sizes) > _MAX_SIZES:
            raise RuleError(
                Code.INVALID_ARGUMENT, f"Cannot count for {len(sizes)} sizes at once: at most {_MAX_SIZES} are allowed."
            )
        with self._controller.reading() as state:
            counts = [rules.fits(state, request.allocation_id, size, context) for size in sizes]
        return admin.CountFitsReply(
            fits=[admin.CountFitsReply.Fit(size=size, count=count) for size, count in zip(sizes, counts, strict=True)]
        )

    def ListPartitionOptions(self, request: Message, caller: Caller) -> Message:
        """The options of partitions that the public API does not tell, of those that the caller may use."""
        context = Context(allowed=caller.allowed)
        partitions = self._controller.state.partitions
        asked = list(dict.fromkeys(request.partition_ids)) or sorted(partitions)
        found = [record for id in asked if (record := partitions.get(id)) and context.may_use(record.allocation)]
        return admin.ListPartitionOptionsReply(partitions=map(messages.partition_options_message, found))

    def SetPartitionOptions(self, request: Message, caller: Caller) -> Message:
        """Change them; the partition works on as it does."""
        id = request.partition_id
        spec = PartitionSpec(id, 0, disable_auto_reset=request.disable_auto_reset, relocatable=request.relocatable)

        def command(state: State) -> tuple[list[Change], None]:
            context = Context(self._lifecycle.unavailable(), caller.allowed)
            record = state.partitions.get(id)
            if record is None or not context.may_use(record.allocation):
                reason = not_there(Kind.PARTITION, id, context).reason
                raise RuleError(Code.NOT_FOUND, f"Cannot change partition {shown(id)}: {reason}.")
            return rules.upsert(state, spec, context)[1], None

        self._controller.submit(command).result()
        return admin.SetPartitionOptionsReply()


def _allocation(state: State, allocation: Allocation) -> Message:
    free_ipus, free_machines, _ = rules.free_summary(state, allocation.id)
    partitions = sorted(state.partitions_in.get(allocation.id, ()))
    return messages.allocation_message(allocation, partitions, free_ipus, free_machines)


def _missing(kind: Kind, id: str, context: Context | None = None) -> NoReturn:
    reason = not_there(kind, id, context or Context()).reason
    raise RuleError(Code.NOT_FOUND, f"Cannot get {kind} {shown(id)}: {reason}.")
