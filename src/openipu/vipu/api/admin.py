# SPDX-License-Identifier: GPL-3.0-or-later
"""The admin API, for administrators only.

Methods take and return the same types as those in ``api.public``. ``api.guard`` checks that the
caller is an administrator before it calls them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import structlog

from openipu.shared.vipu.contract import admin
from openipu.vipu.api import auth, batch_messages, cluster_test_messages
from openipu.vipu.api import convert as messages
from openipu.vipu.api.auth import Caller
from openipu.vipu.api.convert import Message
from openipu.vipu.api.methods import large_requests, non_blocking, waits_for_agents
from openipu.vipu.api.replies import allocation_reply, not_found
from openipu.vipu.api.reply_stream import ReplyStream
from openipu.vipu.api.shared_certificates import SharedCertificates, is_shared_by_all
from openipu.vipu.api.watch import ALL_KINDS, Watches
from openipu.vipu.domain import certificates, rules
from openipu.vipu.domain.batch import Batch, BatchResult, apply_batch, check_length, with_failures
from openipu.vipu.domain.context import Context
from openipu.vipu.domain.errors import Code, RuleError
from openipu.vipu.domain.model import Agent, Certificate, Change, Kind, Put, Role, User, sorted_by_id
from openipu.vipu.domain.service import drain, set_service
from openipu.vipu.domain.specs import AgentSpec, Outcome, Removal, Spec
from openipu.vipu.domain.state import State
from openipu.vipu.fleet import auto_add
from openipu.vipu.fleet.status import AgentState
from openipu.vipu.lifecycle.interface import Lifecycle
from openipu.vipu.lifecycle.ownership import takeover_error
from openipu.vipu.storage.interface import StoppedError
from openipu.vipu.storage.writer import RecordWriter
from openipu.vipu.tls import user_certificates
from openipu.vipu.tls.load import TlsError

_log: structlog.stdlib.BoundLogger = structlog.get_logger("vipu-server")

_LONGEST_WAIT = 30_000  # milliseconds, for progress of a cluster test


class AdminService:
    """Management of agents, clusters, allocations and users, one by one or a whole POD at once."""

    def __init__(
        self,
        controller: RecordWriter,
        lifecycle: Lifecycle,
        watches: Watches,
        max_retries: int,
        certs: Path | None = None,
        *,
        secure: bool = False,
        shared_certificates: bool = False,
        shared: SharedCertificates | None = None,
    ) -> None:
        """Serve the admin API. ``max_retries``: limit of automatic resets for new partitions.

        ``certs``: folder of the certificates of a secure controller, whose authority issues those of users.
        ``secure``: callers are users. Without it, everyone is an administrator.
        ``shared_certificates``: new users need no certificates of their own. ``shared``: users that share some.
        """
        self._watches = watches
        self._certs = certs
        self._secure = secure
        self._shared_certificates = shared_certificates
        self._shared = shared or SharedCertificates()
        self._controller = controller
        self._lifecycle = lifecycle
        self._max_retries = max_retries
        self.user_endpoint: Message | None = None  # for the configuration of new users; None: the one of the call

    @non_blocking
    def Watch(self, request: Message, caller: Caller, stream: ReplyStream) -> None:
        """Start a stream of changes of all kinds."""
        self._watches.watch(request, caller, stream, ALL_KINDS)

    @large_requests
    def Apply(self, request: Message, caller: Caller) -> Message:
        """Apply a whole POD in one transaction, all items or none."""
        check_length(batch_messages.length(request))  # before any work goes into its items
        accounts, keys = [], {}
        for message in request.users:
            # Every user gets a key: new users are known only after the batch is applied.
            user, key = self._new_user(message)
            accounts.append(user)
            keys[user.id] = key
        desired = batch_messages.batch(request, accounts)
        write = not request.validate_only

        def command(state: State) -> tuple[list[Change], BatchResult]:
            result = apply_batch(state, desired, self._context())
            return result.changes if write else [], result

        result: BatchResult = self._controller.submit(command).result()
        applied = result.applied and write
        created = {item.id for item in result.results if item.kind is Kind.USER and item.outcome is Outcome.CREATED}
        access_keys = {id: key for id, key in keys.items() if id in created} if applied else {}
        if applied:
            result = with_failures(result, self._take_over(request.agents))
        reply = batch_messages.reply(result, applied=applied, access_keys=access_keys)
        if access_keys and self.user_endpoint is not None:
            reply.user_endpoint.CopyFrom(self.user_endpoint)
        return reply

    @waits_for_agents
    def CreateAgent(self, request: Message, caller: Caller) -> Message:
        """Register an agent."""
        self._create(messages.agent_spec(request.spec))
        for error in self._take_over([request.spec]).values():
            raise error
        return admin.CreateAgentReply()

    def SetAgentService(self, request: Message, caller: Caller) -> Message:
        """Take an agent out of service, or put it into service. Its partitions stay."""
        out = messages.out_of_service(request.service, request.id)

        def command(state: State) -> tuple[list[Change], bool]:
            changes = set_service(state, request.id, out, request.service_reason)
            return changes, bool(changes)

        return admin.SetAgentServiceReply(changed=self._controller.submit(command).result())

    def DrainAgent(self, request: Message, caller: Caller) -> Message:
        """Take an agent out of service and move its partitions, as far as that is allowed and possible."""

        def command(state: State) -> tuple[list[Change], Message]:
            changes, drained = drain(state, request.id, request.service_reason, self._context(), force=request.force)
            reply = admin.DrainAgentReply(changed=bool(changes), partitions=map(messages.drained_message, drained))
            return [] if request.validate_only else changes, reply

        return self._controller.submit(command).result()

    @waits_for_agents
    def TakeOverAgent(self, request: Message, caller: Caller) -> Message:
        """Make this deployment the owner of an agent."""
        for error in self._lifecycle.take_over([request.id], request.other_agent).result().values():
            raise error
        return admin.TakeOverAgentReply()

    def GetAgent(self, request: Message, caller: Caller) -> Message:
        """Return an agent with all facts about its machine."""
        with self._controller.reading() as state:
            agent = state.agents.get(request.id)
            if agent is None:
                raise not_found(Kind.AGENT, request.id)
            return admin.GetAgentReply(agent=self._agent(state, agent, facts=True))

    def ListAgents(self, request: Message, caller: Caller) -> Message:
        """Return all agents, sorted by id."""
        with self._controller.reading() as state:
            agents = [self._agent(state, agent, facts=False) for agent in sorted_by_id(state.agents)]
        return admin.ListAgentsReply(agents=agents)

    def RemoveAgent(self, request: Message, caller: Caller) -> Message:
        """Remove an agent."""
        return self._remove(Kind.AGENT, request)

    def ListDiscoveredAgents(self, request: Message, caller: Caller) -> Message:
        """Return the agents that announced themselves recently."""
        found = self._lifecycle.discovered()
        with self._controller.reading() as state:
            return admin.ListDiscoveredAgentsReply(agents=[messages.discovered_message(state, each) for each in found])

    def AddDiscoveredAgents(self, request: Message, caller: Caller) -> Message:
        """Register the allowed agents that announced themselves and are not registered, all or none.

        Agents whose automatic id belongs to another endpoint are rejected.
        """
        allowed = auto_add.select(self._lifecycle.discovered(), request.allowed)

        def command(state: State) -> tuple[list[Change], Message]:
            new = [each for each in allowed if (each.host, each.port) not in state.endpoints]
            rejected = [each for each in new if auto_add.conflict(state, each)]
            added = [each for each in new if each not in rejected]
            auto_add.check_number(added)
            agents = tuple(AgentSpec(each.auto_id, each.host, each.port) for each in added)
            result = apply_batch(state, Batch(agents=agents), self._context())
            for item in result.results:
                if item.code is not None:
                    raise RuleError(item.code, item.error)
            return result.changes, admin.AddDiscoveredAgentsReply(
                agent_ids=[agent.id for agent in agents],
                rejected=[messages.discovered_message(state, each) for each in rejected],
            )

        reply = self._controller.submit(command).result()
        for each in reply.rejected:
            _log.warning("discovered agent rejected", agent=each.auto_add_id, reason=each.conflict)
        return reply

    def ListQuarantine(self, request: Message, caller: Caller) -> Message:
        """Return the shares in quarantine, sorted by agent and partition."""
        shares = self._lifecycle.quarantine().result()
        return admin.ListQuarantineReply(shares=map(messages.quarantined_message, shares))

    @waits_for_agents
    def ReleaseQuarantine(self, request: Message, caller: Caller) -> Message:
        """Release a share in quarantine, or all shares of an agent, and wait for it."""
        released = self._lifecycle.release_quarantine(request.agent_id, request.partition_id).result()
        return admin.ReleaseQuarantineReply(shares=map(messages.quarantined_message, released))

    def CreateCluster(self, request: Message, caller: Caller) -> Message:
        """Create a cluster of agents."""
        self._create(messages.cluster_spec(request.spec))
        return admin.CreateClusterReply()

    def GetCluster(self, request: Message, caller: Caller) -> Message:
        """Return a cluster."""
        with self._controller.reading() as state:
            cluster = state.clusters.get(request.id)
            if cluster is None:
                raise not_found(Kind.CLUSTER, request.id)
            allocations = sorted(state.allocations_in.get(cluster.id, ()))
        return admin.GetClusterReply(cluster=messages.cluster_message(cluster, allocations))

    def ListClusters(self, request: Message, caller: Caller) -> Message:
        """Return all clusters, sorted by id."""
        with self._controller.reading() as state:
            clusters = [
                messages.cluster_message(cluster, sorted(state.allocations_in.get(cluster.id, ())))
                for cluster in sorted_by_id(state.clusters)
            ]
        return admin.ListClustersReply(clusters=clusters)

    def RemoveCluster(self, request: Message, caller: Caller) -> Message:
        """Remove a cluster and keep its agents."""
        return self._remove(Kind.CLUSTER, request)

    def CreateAllocation(self, request: Message, caller: Caller) -> Message:
        """Create an allocation and return it with its machines."""
        spec = messages.allocation_spec(request.spec)
        self._create(spec)
        # Another client may have removed it already, which is not an error.
        with self._controller.reading() as state:
            allocation = state.allocations.get(spec.id)
            message = allocation and allocation_reply(state, allocation)
        return admin.CreateAllocationReply(allocation=message)

    def RemoveAllocation(self, request: Message, caller: Caller) -> Message:
        """Remove an allocation and free its machines."""
        return self._remove(Kind.ALLOCATION, request)

    def CreateUser(self, request: Message, caller: Caller) -> Message:
        """Create a user and return its access key, which cannot be read again."""
        user, key = self._new_user(request.spec)
        self._create(user)
        endpoint = self.user_endpoint if user.role is Role.USER else None
        return admin.CreateUserReply(access_key=key, user_endpoint=endpoint)

    def ListUsers(self, request: Message, caller: Caller) -> Message:
        """Return all users, sorted by id, without their keys."""
        return admin.ListUsersReply(users=map(messages.user_message, sorted_by_id(self._controller.state.users)))

    def RemoveUser(self, request: Message, caller: Caller) -> Message:
        """Remove a user and keep the objects that it created."""
        return self._remove(Kind.USER, request)

    def AddCertificate(self, request: Message, caller: Caller) -> Message:
        """Issue a certificate for a user, or register one."""
        certificates.check_user(self._controller.state, request.user_id)  # no certificate is issued for other names
        try:
            if request.signing_request:
                if self._certs is None:
                    raise TlsError(
                        "Cannot issue a certificate: this controller runs without --secure. Start vipu-server with "
                        "--secure."
                    )
                pem = user_certificates.sign(self._certs, request.user_id, request.signing_request)
            else:
                pem = request.certificate
            added = Certificate(*user_certificates.describe(pem))
        except TlsError as error:
            raise RuleError(Code.FAILED_PRECONDITION, str(error)) from None
        of_all = is_shared_by_all(added.key, self._certs)

        def command(state: State) -> tuple[list[Change], None]:
            users = {*self._shared.users(added.key), *(certificates.sharing(state) if of_all else ())}
            return [Put(certificates.add(state, request.user_id, added, users))], None

        self._controller.submit(command).result()
        return admin.AddCertificateReply(certificate=pem, description=messages.certificate_message(added))

    def ListCertificates(self, request: Message, caller: Caller) -> Message:
        """Return the certificates of a user, the oldest first, after revoked ones of removed users with its id."""
        with self._controller.reading() as state:
            user = state.users.get(request.user_id)
            if user is None:
                raise not_found(Kind.USER, request.user_id)
            found = certificates.known(state, user)
        return admin.ListCertificatesReply(
            certificates=map(messages.certificate_message, found),
            required=self._certs is not None and certificates.needs_own(user),
        )

    def RevokeCertificate(self, request: Message, caller: Caller) -> Message:
        """Revoke a certificate of a user. The next call with it is rejected."""

        def command(state: State) -> tuple[list[Change], str]:
            user, key = certificates.revoke(state, request.user_id, request.key)
            return [Put(user)], key

        return admin.RevokeCertificateReply(key=self._controller.submit(command).result())

    def _new_user(self, message: Message) -> tuple[User, str]:
        spec = messages.user_spec(message)
        return auth.new_user(
            spec.id,
            spec.role,
            spec.allocations,
            all_allocations=spec.all_allocations,
            shared_certificate=self._shared_certificates,
        )

    def _agent(self, state: State, agent: Agent, *, facts: bool) -> Message:
        return messages.agent_message(
            agent,
            self._lifecycle.agent_status(agent.id),
            state.cluster_of.get(agent.id, ""),
            state.allocation_of.get(agent.id, ""),
            facts=facts,
        )

    def StartClusterTest(self, request: Message, caller: Caller) -> Message:
        """Start a run of cluster tests."""
        tests = cluster_test_messages.tests(request)
        run = self._lifecycle.start_cluster_test(request.cluster_id, tests).result()
        return admin.StartClusterTestReply(run=cluster_test_messages.run(run))

    @waits_for_agents
    def GetClusterTest(self, request: Message, caller: Caller) -> Message:
        """Return the last run. With a wait, return as soon as it has progressed."""
        seconds = min(request.wait_milliseconds, _LONGEST_WAIT) / 1000
        cluster_test_messages.check_last(request.run_id, self._lifecycle.cluster_test())
        run = self._lifecycle.wait_cluster_test(request.known_results, seconds)
        cluster_test_messages.check_last(request.run_id, run)
        results = self._lifecycle.cluster_test_results() if request.every_cluster else {}
        return admin.GetClusterTestReply(
            run=cluster_test_messages.run(run), others=cluster_test_messages.others(results, run)
        )

    @waits_for_agents
    def StopClusterTest(self, request: Message, caller: Caller) -> Message:
        """Stop the run in progress. Do nothing when none is."""
        last = self._lifecycle.stop_cluster_test(request.run_id).result()
        cluster_test_messages.check_last(request.run_id, last)
        return admin.StopClusterTestReply(run=cluster_test_messages.run(last))

    def _create(self, spec: Spec) -> None:
        def command(state: State) -> tuple[list[Change], None]:
            return rules.create(state, spec, self._context()), None

        self._controller.submit(command).result()

    def _take_over(self, specs: Iterable[Message]) -> dict[str, RuleError]:
        """Take over the agents of specs that require it. Return the errors by agent; all agents stay registered."""
        ids = [spec.id for spec in specs if spec.take_over]
        if not ids:
            return {}
        try:
            errors = self._lifecycle.take_over(ids).result()
        except StoppedError:
            errors = {id: takeover_error(id, Code.FAILED_PRECONDITION, "the controller is stopping") for id in ids}

        def extended(id: str, error: RuleError) -> RuleError:
            command = f"vipu-admin take-over agent {id}"
            remedy = "" if command in error.message else f" Take it over with '{command}'."
            return RuleError(error.code, f"{error.message} The record of the agent is stored.{remedy}")

        return {id: extended(id, error) for id, error in errors.items()}

    def _remove(self, kind: Kind, request: Message) -> Message:
        removal = Removal(kind, request.id, request.force)

        def command(state: State) -> tuple[list[Change], list[Change]]:
            changes = rules.remove(state, removal, self._context())
            return changes, changes

        return batch_messages.removal_reply(self._controller.submit(command).result())

    def _context(self) -> Context:
        lifecycle = self._lifecycle
        return Context(
            lifecycle.unavailable(),
            max_retries=self._max_retries,
            cluster_under_test=lifecycle.cluster_under_test(),
            quarantined=lifecycle.quarantined(),
            without_users=not self._secure,
            is_up=lambda id: lifecycle.agent_status(id).state is AgentState.UP,
        )
