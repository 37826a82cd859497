# SPDX-License-Identifier: GPL-3.0-or-later
"""Random gRPC requests to a whole controller, compared with the simple model (stateful hypothesis)."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.domain import invariants
from openipu.vipu.server.initialise import initialise
from tests.integration.faults.simple_model import Model
from tests.integration.vipu_servers import InProcess, InstantLife, partition
from tests.waiting import until

AGENTS = [f"ag{number}" for number in range(8)]
SIZES = (1, 2, 4, 8, 16)
KINDS = {
    "agent": admin.KIND_AGENT,
    "cluster": admin.KIND_CLUSTER,
    "allocation": admin.KIND_ALLOCATION,
    "partition": admin.KIND_PARTITION,
}
# Few names, so that requests often refer to existing objects, and sometimes to missing ones.
agent_ids = st.sampled_from(AGENTS)
cluster_ids = st.sampled_from(["c0", "c1"])
allocation_ids = st.sampled_from(["a0", "a1", "a2"])
partition_ids = st.sampled_from([f"p{number}" for number in range(8)])
# Mostly valid: consecutive machines of the rack.
agent_lists = st.one_of(
    st.tuples(st.integers(0, 7), st.integers(1, 8)).map(lambda cut: AGENTS[cut[0] : cut[0] + cut[1]]),
    st.lists(agent_ids, max_size=4),
)
sizes = st.one_of(st.sampled_from(SIZES), st.sampled_from([0, 3, 32, 2**32 - 1]))
removals = st.one_of(
    st.tuples(st.just("agent"), agent_ids),
    st.tuples(st.just("cluster"), cluster_ids),
    st.tuples(st.just("allocation"), allocation_ids),
    st.tuples(st.just("partition"), partition_ids),
)


@cache
def empty_database() -> Path:
    """Return the path of an empty database, to be copied."""
    path = Path(tempfile.mkdtemp(prefix="vipu-model-")) / "empty.db"
    initialise(path)
    return path


class ControllerMachine(RuleBasedStateMachine):
    """State machine that compares the controller with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="vipu-model-")
        self.database = Path(self.folder.name) / "vipu-server.db"
        shutil.copy(empty_database(), self.database)
        self.model = Model()
        self.server = InProcess(self.database, life=InstantLife)

    def teardown(self) -> None:
        self.server.stop()
        self.folder.cleanup()

    def agree(self, rejections: set[grpc.StatusCode], method: Any, request: Any) -> Any:
        """Make a call that must fail with one of these codes, or succeed when there are none."""
        try:
            reply = method(request, timeout=10)
        except grpc.RpcError as error:
            assert error.code() in rejections, f"{error.code()} instead of {rejections or 'success'}: {error.details()}"
            assert error.details().endswith("."), error.details()
            return None
        assert not rejections, f"succeeded instead of failing with {rejections}: {request}"
        return reply

    @rule(id=agent_ids, port=st.integers(1, 9))
    def create_agent(self, id: str, port: int) -> None:
        rejections = self.model.create_agent(id, "127.0.0.9", port)
        spec = admin.AgentSpec(id=id, host="127.0.0.9", port=port)
        self.agree(rejections, self.server.admin.CreateAgent, admin.CreateAgentRequest(spec=spec))

    @rule(id=cluster_ids, agents=agent_lists, ilds=st.sampled_from([1, 1, 2]))
    def create_cluster(self, id: str, agents: list[str], ilds: int) -> None:
        rejections = self.model.create_cluster(id, agents, ilds)
        spec = admin.ClusterSpec(id=id, agent_ids=agents, num_ilds=ilds)
        self.agree(rejections, self.server.admin.CreateCluster, admin.CreateClusterRequest(spec=spec))

    @rule(id=allocation_ids, cluster=cluster_ids, agents=agent_lists)
    def create_allocation(self, id: str, cluster: str, agents: list[str]) -> None:
        if not agents:
            return
        rejections = self.model.create_allocation(id, cluster, agents)
        spec = admin.AllocationSpec(id=id, cluster_id=cluster, agent_ids=agents)
        self.agree(rejections, self.server.admin.CreateAllocation, admin.CreateAllocationRequest(spec=spec))

    @rule(id=partition_ids, allocation=allocation_ids, size=sizes)
    def create_partition(self, id: str, allocation: str, size: int) -> None:
        rejections = self.model.create_partition(id, allocation, size)
        self.agree(rejections, self.server.user.CreatePartition, partition(id, size, allocation))

    @rule(what=removals, force=st.booleans())
    def remove(self, what: tuple[str, str], force: bool) -> None:
        kind, id = what
        rejections = self.model.remove(kind, id, force)
        if kind == "partition":
            request = virmgrpc.RemovePartitionRequest(partition_id=id, force=force)
            self.agree(rejections, self.server.user.RemovePartition, request)
        else:
            method = getattr(self.server.admin, f"Remove{kind.capitalize()}")
            self.agree(rejections, method, admin.RemoveRequest(id=id, force=force))

    @rule(first=st.sampled_from([0, 4]), count=st.sampled_from([2, 4]), with_partition=st.booleans())
    def apply_rack(self, first: int, count: int, with_partition: bool) -> None:
        """Apply a whole rack in one batch. A conflict with existing objects must reject all of it."""
        names, cluster, allocation = AGENTS[first : first + count], f"c{first // 4}", f"a{first // 4}"
        request, expected = admin.ApplyRequest(), self.model.copy()
        for name in names:
            port = 1 + AGENTS.index(name)
            request.agents.append(admin.AgentSpec(id=name, host="127.0.0.9", port=port))
            if expected.agents.get(name) != ("127.0.0.9", port):
                if name in expected.agents:
                    return None  # the model does not cover changes of agents
                rejected = expected.create_agent(name, "127.0.0.9", port)
                if rejected:
                    return self.rejected(request)
        if cluster in expected.clusters or allocation in expected.allocations:
            return None
        request.clusters.append(admin.ClusterSpec(id=cluster, agent_ids=names))
        request.allocations.append(admin.AllocationSpec(id=allocation, cluster_id=cluster, agent_ids=names))
        rejected = expected.create_cluster(cluster, names, 1) or expected.create_allocation(allocation, cluster, names)
        if with_partition and not rejected:
            requirements = virmgrpc.PartitionRequirements(id="p0", size=4, allocation_id=allocation)
            request.partitions.append(admin.PartitionSpec(requirements=requirements))
            if "p0" in expected.partitions:
                rejected = {grpc.StatusCode.FAILED_PRECONDITION}  # it exists in another allocation
            else:
                rejected = expected.create_partition("p0", allocation, 4)
        if rejected:
            return self.rejected(request)
        reply = self.server.admin.Apply(request, timeout=10)
        assert reply.applied, reply.results
        self.model = expected
        return None

    def rejected(self, request: Any) -> None:
        """Apply a batch of which an item must fail."""
        reply = self.server.admin.Apply(request, timeout=10)
        assert not reply.applied
        assert any(result.error for result in reply.results)

    @rule(what=st.lists(removals, min_size=1, max_size=4, unique=True))
    def apply_removals(self, what: list[tuple[str, str]]) -> None:
        """Apply many removals of existing and missing objects in one batch, all or none."""
        expected, rejected = self.model.copy(), False
        order = ["partition", "allocation", "cluster", "agent"]
        for kind, id in sorted(what, key=lambda item: order.index(item[0])):
            rejected |= bool(expected.remove(kind, id, force=False))
        request = admin.ApplyRequest(removals=[admin.ObjectRef(kind=KINDS[kind], id=id) for kind, id in what])
        if rejected:
            self.rejected(request)
        else:
            assert self.server.admin.Apply(request, timeout=10).applied
            self.model = expected

    @precondition(lambda self: self.model.partitions)
    @rule(data=st.data())
    def reset_partition(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.model.partitions)))
        self.server.user.ResetPartition(virmgrpc.ResetPartitionRequest(partition_id=id), timeout=10)

    @precondition(lambda self: self.model.agents)
    @rule()
    def restart(self) -> None:
        self.server.stop()
        self.server = InProcess(self.database, life=InstantLife)

    @invariant()
    def state_is_consistent(self) -> None:
        self.lists_agree()
        self.records_follow_the_rules()
        self.free_places_are_reported_correctly()

    def lists_agree(self) -> None:
        """Check that lists equal the model, and that IPUs of partitions stay the same and are not shared."""
        server, model = self.server, self.model
        agents = server.admin.ListAgents(admin.ListAgentsRequest(), timeout=10).agents
        assert {agent.spec.id: (agent.spec.host, agent.spec.port) for agent in agents} == model.agents
        clusters = server.admin.ListClusters(admin.ListClustersRequest(), timeout=10).clusters
        assert {each.spec.id: (tuple(each.spec.agent_ids), each.spec.num_ilds) for each in clusters} == {
            id: (cluster.agents, cluster.ilds) for id, cluster in model.clusters.items()
        }
        allocations = server.tenant.ListAllocations(admin.ListAllocationsRequest(), timeout=10).allocations
        assert {each.spec.id: (each.spec.cluster_id, tuple(each.spec.agent_ids)) for each in allocations} == (
            model.allocations
        )
        found = until(self.all_active)[0]
        assert {each.id: (each.spec.allocation_id, len(each.spec.ipus)) for each in found} == model.partitions
        for each in found:
            members = model.allocations[each.spec.allocation_id][1]
            place = self.place_of(each)
            assert len(place) == len(each.spec.ipus)
            assert {agent for agent, _ in place} <= set(members)
            assert model.places.setdefault(each.id, place) == place
        used = [ipu for place in model.places.values() for ipu in place]
        assert len(used) == len(set(used)), "an IPU is in two partitions"

    def all_active(self) -> tuple[list[Any]] | None:
        found = list(self.server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), timeout=10).partitions)
        return (found,) if all(each.ready_state == virmgrpc.PS_ACTIVE for each in found) else None

    def place_of(self, listed: Any) -> frozenset[tuple[str, int]]:
        cluster = self.model.clusters[self.model.allocations[listed.spec.allocation_id][0]]
        per_ild = len(cluster.agents) // cluster.ilds
        return frozenset(
            (cluster.agents[ipu.ipulink_domain_topology_id * per_ild + ipu.topology_id // 4], ipu.topology_id % 4)
            for ipu in listed.spec.ipus
        )

    def records_follow_the_rules(self) -> None:
        with self.server.server.controller.reading() as state:
            assert invariants.violations(state) == []

    def free_places_are_reported_correctly(self) -> None:
        for id in self.model.allocations:
            request = admin.CountFitsRequest(allocation_id=id, sizes=SIZES)
            for fit in self.server.tenant.CountFits(request, timeout=10).fits:
                assert bool(fit.count) == self.model.fits(id, fit.size), (id, fit)
