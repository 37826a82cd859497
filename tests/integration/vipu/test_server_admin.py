# SPDX-License-Identifier: GPL-3.0-or-later
"""The admin API, the tenant API, and the endpoints that serve them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.fleet.status import DiscoveredAgent
from tests.integration.vipu_servers import Client, InProcess, InstantLife, partition, pod, wait_active


def rejection(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


def outcomes(reply: object) -> list[tuple[str, int]]:
    return [(item.id, item.outcome) for item in reply.results]


def removed(reply: object) -> list[tuple[int, str]]:
    return [(item.kind, item.id) for item in reply.removed]


def test_agents(instant_server: InProcess) -> None:
    api = instant_server.admin
    api.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="ag01", host="127.0.9.1")))
    api.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="ag02", host="127.0.9.2", port=8081)))
    assert rejection(
        lambda: api.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="ag03", host="127.0.9.1", port=8080)))
    ) == (
        grpc.StatusCode.ALREADY_EXISTS,
        "Cannot create agent 'ag03': agent 'ag01' already uses 127.0.9.1:8080.",
    )
    listed = api.ListAgents(admin.ListAgentsRequest()).agents
    assert [(agent.spec.id, agent.spec.port, agent.state) for agent in listed] == [("ag01", 8080, 1), ("ag02", 8081, 1)]
    instant_server.life.down = frozenset({"ag02"})
    agent = api.GetAgent(admin.GetAgentRequest(id="ag02")).agent
    assert (agent.state, agent.reason, agent.cluster_id) == (admin.AGENT_STATE_DOWN, "no response", "")
    api.RemoveAgent(admin.RemoveRequest(id="ag01"))
    assert rejection(lambda: api.GetAgent(admin.GetAgentRequest(id="ag01"))) == (
        grpc.StatusCode.NOT_FOUND,
        "Cannot get agent 'ag01': agent 'ag01' does not exist.",
    )


def test_clusters_and_allocations(instant_server: InProcess) -> None:
    pod(instant_server, 8, {})
    api, tenant = instant_server.admin, instant_server.tenant
    reply = api.CreateAllocation(
        admin.CreateAllocationRequest(spec=admin.AllocationSpec(id="a1", cluster_id="cl0", size=4))
    )
    assert list(reply.allocation.spec.agent_ids) == ["ag01", "ag02", "ag03", "ag04"]
    api.CreateAllocation(
        admin.CreateAllocationRequest(spec=admin.AllocationSpec(id="a2", cluster_id="cl0", agent_ids=["ag07", "ag08"]))
    )
    instant_server.user.CreatePartition(partition("p1", 2))
    instant_server.user.CreatePartition(partition("p2", 4))
    allocation = tenant.GetAllocation(admin.GetAllocationRequest(id="a1")).allocation
    assert list(allocation.partition_ids) == ["p1", "p2"]
    assert (allocation.free_ipus, list(allocation.free_machines)) == (10, [2])
    assert [each.spec.id for each in tenant.ListAllocations(admin.ListAllocationsRequest()).allocations] == ["a1", "a2"]
    fits = tenant.CountFits(admin.CountFitsRequest(allocation_id="a1", sizes=[1, 2, 4, 8, 16, 1])).fits
    assert [(fit.size, fit.count) for fit in fits] == [(1, 10), (2, 5), (4, 2), (8, 1), (16, 0)]
    assert rejection(lambda: tenant.CountFits(admin.CountFitsRequest(allocation_id="a1", sizes=[3])))[0] == (
        grpc.StatusCode.INVALID_ARGUMENT
    )
    cluster = api.GetCluster(admin.GetClusterRequest(id="cl0")).cluster
    assert (cluster.spec.num_ilds, cluster.spec.ipu_link_topology) == (1, admin.IPU_LINK_TOPOLOGY_TORUS)
    assert list(cluster.allocation_ids) == ["a1", "a2"]
    assert api.ListClusters(admin.ListClustersRequest()).clusters == [cluster]
    assert rejection(lambda: api.RemoveCluster(admin.RemoveRequest(id="cl0")))[0] is grpc.StatusCode.FAILED_PRECONDITION
    assert rejection(lambda: api.RemoveAllocation(admin.RemoveRequest(id="a1")))[1] == (
        "Cannot remove allocation 'a1': partitions 'p1', 'p2' are in it. Remove the partitions first, or use force."
    )
    reply = api.RemoveAllocation(admin.RemoveRequest(id="a1", force=True))
    assert removed(reply) == [(admin.KIND_PARTITION, "p1"), (admin.KIND_PARTITION, "p2"), (admin.KIND_ALLOCATION, "a1")]
    assert not instant_server.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions
    reply = api.RemoveAgent(admin.RemoveRequest(id="ag08", force=True))
    assert removed(reply) == [
        (admin.KIND_ALLOCATION, "a2"),
        (admin.KIND_CLUSTER, "cl0"),
        (admin.KIND_AGENT, "ag08"),
    ]
    assert not api.ListClusters(admin.ListClustersRequest()).clusters
    assert len(api.ListAgents(admin.ListAgentsRequest()).agents) == 7


def test_a_whole_pod_at_once(instant_server: InProcess) -> None:
    api = instant_server.admin
    request = admin.ApplyRequest(
        agents=[admin.AgentSpec(id=f"ag{n}", host=f"127.0.9.{n}") for n in range(1, 5)],
        clusters=[admin.ClusterSpec(id="cl0", agent_ids=[f"ag{n}" for n in range(1, 5)])],
        allocations=[admin.AllocationSpec(id="a1", cluster_id="cl0", size=4)],
        partitions=[admin.PartitionSpec(requirements=partition("p1", 8).requirements, relocatable=True)],
        users=[admin.UserSpec(id="alice", allocation_ids=["a1"])],
        validate_only=True,
    )
    reply = api.Apply(request)
    assert not reply.applied
    assert {outcome for _, outcome in outcomes(reply)} == {admin.OUTCOME_CREATED}
    assert not reply.access_keys
    assert not api.ListAgents(admin.ListAgentsRequest()).agents
    request.validate_only = False
    reply = api.Apply(request)
    assert reply.applied
    assert [id for id, _ in outcomes(reply)] == ["ag1", "ag2", "ag3", "ag4", "cl0", "a1", "p1", "alice"]
    assert len(reply.access_keys["alice"]) == 11
    wait_active(instant_server, "p1")
    again = api.Apply(request)
    assert again.applied
    assert {outcome for _, outcome in outcomes(again)} == {admin.OUTCOME_UNCHANGED}
    assert not again.access_keys
    removals = admin.ApplyRequest(
        removals=[
            admin.ObjectRef(kind=admin.KIND_AGENT, id="ag4"),
            admin.ObjectRef(kind=admin.KIND_CLUSTER, id="cl0"),
            admin.ObjectRef(kind=admin.KIND_PARTITION, id="p1"),
            admin.ObjectRef(kind=admin.KIND_ALLOCATION, id="a1"),
            admin.ObjectRef(kind=admin.KIND_USER, id="alice"),
        ]
    )
    reply = api.Apply(removals)
    assert reply.applied
    assert outcomes(reply) == [(id, admin.OUTCOME_REMOVED) for id in ("ag4", "cl0", "p1", "a1", "alice")]
    assert len(api.ListAgents(admin.ListAgentsRequest()).agents) == 3


def test_a_batch_with_an_invalid_item_changes_nothing(instant_server: InProcess) -> None:
    reply = instant_server.admin.Apply(
        admin.ApplyRequest(
            agents=[admin.AgentSpec(id="ag1", host="127.0.9.1"), admin.AgentSpec(id="../x", host="127.0.9.2")],
            users=[admin.UserSpec(id="alice")],
        )
    )
    assert not reply.applied
    assert outcomes(reply) == [
        ("ag1", admin.OUTCOME_NOT_APPLIED),
        ("../x", admin.OUTCOME_FAILED),
        ("alice", admin.OUTCOME_NOT_APPLIED),
    ]
    assert (reply.results[1].code, reply.results[1].error[:26]) == (3, "Cannot create agent '../x'")
    assert not reply.access_keys
    assert not instant_server.admin.ListAgents(admin.ListAgentsRequest()).agents


def test_unknown_enum_numbers_are_rejected(instant_server: InProcess) -> None:
    pod(instant_server, 2, {})
    api = instant_server.admin
    cluster = admin.ClusterSpec(id="x", agent_ids=["ag01"], ipu_link_topology=77)
    user = admin.UserSpec(id="alice", role=77)
    for call in (
        lambda: api.CreateCluster(admin.CreateClusterRequest(spec=cluster)),
        lambda: api.CreateUser(admin.CreateUserRequest(spec=user)),
        lambda: api.Apply(admin.ApplyRequest(removals=[admin.ObjectRef(kind=77, id="ag01")])),
        lambda: api.Apply(admin.ApplyRequest(removals=[admin.ObjectRef(id="ag01")])),
        lambda: instant_server.user.CreatePartition(partition("p1", ipulink_routing_type=77)),
        lambda: instant_server.user.CreatePartition(partition("p1", sync_type=-1)),
    ):
        assert rejection(call)[0] in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
    assert [each.spec.id for each in api.ListClusters(admin.ListClustersRequest()).clusters] == ["cl0"]
    assert not api.ListUsers(admin.ListUsersRequest()).users


def test_users(instant_server: InProcess) -> None:
    pod(instant_server, 2)
    api = instant_server.admin
    key = api.CreateUser(admin.CreateUserRequest(spec=admin.UserSpec(id="alice", allocation_ids=["a1"]))).access_key
    assert len(key) == 11
    assert rejection(lambda: api.CreateUser(admin.CreateUserRequest(spec=admin.UserSpec(id="alice"))))[0] == (
        grpc.StatusCode.ALREADY_EXISTS
    )
    assert api.ListUsers(admin.ListUsersRequest()).users == [
        admin.UserSpec(id="alice", role=admin.ROLE_USER, allocation_ids=["a1"])
    ]
    api.RemoveUser(admin.RemoveRequest(id="alice"))
    assert not api.ListUsers(admin.ListUsersRequest()).users


def test_discovered_agents(instant_server: InProcess) -> None:
    api = instant_server.admin
    instant_server.life.found = [DiscoveredAgent(f"127.0.9.{n}", 8080, "eth1", 1.5) for n in (1, 2)]
    api.CreateAgent(admin.CreateAgentRequest(spec=admin.AgentSpec(id="ag01", host="127.0.9.1")))
    listed = api.ListDiscoveredAgents(admin.ListDiscoveredAgentsRequest()).agents
    assert [(each.auto_add_id, each.agent_id, each.network_interface) for each in listed] == [
        ("127.0.9.1-8080", "ag01", "eth1"),
        ("127.0.9.2-8080", "", "eth1"),
    ]
    request = admin.AddDiscoveredAgentsRequest(allowed=["127.0.9.0/24"])
    assert api.AddDiscoveredAgents(request).agent_ids == ["127.0.9.2-8080"]
    assert api.AddDiscoveredAgents(request) == admin.AddDiscoveredAgentsReply()
    assert api.GetAgent(admin.GetAgentRequest(id="127.0.9.2-8080")).agent.spec.host == "127.0.9.2"


def test_a_separate_admin_endpoint(vipu_server: Callable[..., InProcess]) -> None:
    server = vipu_server(life=InstantLife, admin=ListenAddress("127.0.0.2", 0))
    assert rejection(lambda: server.admin.ListAgents(admin.ListAgentsRequest()))[0] is grpc.StatusCode.UNIMPLEMENTED
    other = Client(str(server.endpoints[1]))
    assert other.address.startswith("127.0.0.2:")
    pod(other, 4)
    server.user.CreatePartition(partition("p1"))
    assert list(server.tenant.GetAllocation(admin.GetAllocationRequest(id="a1")).allocation.partition_ids) == ["p1"]
    assert len(other.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions) == 1
    other.close()


def test_lists_have_one_order(vipu_server: Callable[..., InProcess], tmp_path: Path) -> None:
    """Lists are sorted by id, even after a rejected batch and after a restart."""
    database = tmp_path / "pod.db"
    server = vipu_server(database, life=InstantLife)

    def ids() -> dict[str, list[str]]:
        return {
            "agents": [each.spec.id for each in server.admin.ListAgents(admin.ListAgentsRequest()).agents],
            "clusters": [each.spec.id for each in server.admin.ListClusters(admin.ListClustersRequest()).clusters],
            "users": [each.id for each in server.admin.ListUsers(admin.ListUsersRequest()).users],
            "allocations": [
                each.spec.id for each in server.tenant.ListAllocations(admin.ListAllocationsRequest()).allocations
            ],
            "partitions": [each.id for each in server.user.ListPartitions(virmgrpc.ListPartitionsRequest()).partitions],
            "options": [
                each.partition_id
                for each in server.tenant.ListPartitionOptions(admin.ListPartitionOptionsRequest()).partitions
            ],
            "attributes": [
                each.agent for each in server.user.ListIPUAttributes(virmgrpc.ListIPUAttributesRequest()).entries
            ],
        }

    request = admin.ApplyRequest()
    for name in ("c", "a", "b"):
        request.agents.add(id=name, host=f"host-{name}")
        request.clusters.add(id=name, agent_ids=[name])
        request.allocations.add(id=name, cluster_id=name, size=1)
        request.partitions.add().requirements.MergeFrom(partition(name, 1, name).requirements)
        request.users.add(id=name)
    assert server.admin.Apply(request).applied
    expected = {kind: ["a", "b", "c"] for kind in ids()}
    assert ids() == expected
    rejected = admin.ApplyRequest(
        removals=[admin.ObjectRef(kind=admin.KIND_PARTITION, id="a"), admin.ObjectRef(kind=admin.KIND_AGENT, id="a")]
    )
    assert not server.admin.Apply(rejected).applied
    assert ids() == expected
    server.stop()
    server = vipu_server(database, life=InstantLife)
    assert ids() == expected


def test_records_survive_a_restart(vipu_server: Callable[..., InProcess]) -> None:
    server = vipu_server(life=InstantLife)
    pod(server)
    server.user.CreatePartition(partition("p1", 8, num_gcds=2))
    wait_active(server, "p1")
    before = server.user.ListPartitions(virmgrpc.ListPartitionsRequest())
    server.stop()
    again = vipu_server(life=InstantLife)
    assert again.user.ListPartitions(virmgrpc.ListPartitionsRequest()) == before
    assert len(again.admin.ListAgents(admin.ListAgentsRequest()).agents) == 16
