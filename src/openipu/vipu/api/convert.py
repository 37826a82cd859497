# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion between messages of the public and admin APIs and records. It contains no rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from openipu.shared.vipu.contract import admin, virmgrpc
from openipu.shared.vipu.ports import AGENT_PORT
from openipu.vipu.domain.errors import Code, RuleError, quoted
from openipu.vipu.domain.model import (
    IPUS_PER_MACHINE,
    Agent,
    Allocation,
    Certificate,
    Cluster,
    GwRouting,
    GwTopology,
    Kind,
    Operation,
    Partition,
    PlacedIpu,
    Role,
    Routing,
    SyncType,
    Topology,
    User,
)
from openipu.vipu.domain.service import DrainedPartition
from openipu.vipu.domain.specs import AgentSpec, AllocationSpec, PartitionSpec, UserSpec
from openipu.vipu.domain.state import State
from openipu.vipu.domain.validation import MAX_AGENTS_PER_CLUSTER
from openipu.vipu.fleet import auto_add
from openipu.vipu.fleet.status import AgentState, AgentStatus, DiscoveredAgent, QuarantinedShare

# Message classes are built at run time, so a type checker sees Any.
Message = Any

MAX_IPUS = IPUS_PER_MACHINE * MAX_AGENTS_PER_CLUSTER  # of one partition

# Open enums accept any number. Unknown numbers become values that the rules reject.
_TOPOLOGIES = {0: Topology.MESH, 1: Topology.MESH, 2: Topology.TORUS}
_GW_TOPOLOGIES = {0: GwTopology.LOOPED, 1: GwTopology.LOOPED}
_OUT_OF_SERVICE = {0: None, 1: False, 2: True}
_ROLES = {0: Role.USER, 1: Role.USER, 2: Role.ADMIN}
KINDS = {1: Kind.AGENT, 2: Kind.CLUSTER, 3: Kind.ALLOCATION, 4: Kind.PARTITION, 5: Kind.USER}
KIND_NUMBERS = {kind: number for number, kind in KINDS.items()}
_AGENT_STATES = {AgentState.UNKNOWN: 0, AgentState.UP: 1, AgentState.DOWN: 2}


def partition_spec(message: Message) -> PartitionSpec:
    """Return the spec in a ``CreatePartitionRequest`` or in a ``PartitionSpec`` of a batch. Raises RuleError."""
    requirements = message.requirements
    if len(requirements.ipus) > MAX_IPUS:  # a short request may list many empty ones
        raise RuleError(
            Code.INVALID_ARGUMENT,
            f"Cannot create partition {quoted(requirements.id)}: it lists {len(requirements.ipus)} IPUs; at most "
            f"{MAX_IPUS} are allowed.",
        )
    return PartitionSpec(
        id=requirements.id,
        size=requirements.size,
        allocation=requirements.allocation_id,
        cluster=requirements.cluster_id,
        routing=cast(Routing, requirements.ipulink_routing_type),
        num_segments=requirements.num_ipulink_segments,
        gw_routing=cast(GwRouting, requirements.gw_routing_type),
        sync_type=cast(SyncType, requirements.sync_type),
        num_gcds=requirements.num_gcds,
        num_replicas=requirements.num_replicas,
        reconfigurable=requirements.reconfigurable,
        ipus=tuple(
            PlacedIpu(ipu.ipulink_domain_topology_id, ipu.ipulink_domain_routing_id, ipu.topology_id, ipu.routing_id)
            for ipu in requirements.ipus
        ),
        disable_auto_reset=message.disable_auto_reset,
        relocatable=message.relocatable,
    )


def server_version(partition: Partition) -> str:
    """Return the IPUoF server version of a partition, empty until its agents have reported it."""
    return partition.devices[0].ipuof_server_version if partition.devices else ""


def partition_message(partition: Partition) -> Message:
    """Return a ``Partition`` message."""
    return virmgrpc.Partition(
        id=partition.id,
        spec=virmgrpc.PartitionSpec(
            cluster_id=partition.cluster,
            ipus=[
                virmgrpc.PartitionIpu(
                    ipulink_domain_topology_id=ipu.ild,
                    ipulink_domain_routing_id=ipu.ild_routing_id,
                    topology_id=ipu.topology_id,
                    routing_id=ipu.routing_id,
                )
                for ipu in partition.ipus
            ],
            ipulink_routing_type=partition.routing,
            sync_type=partition.sync_type,
            num_gcds=partition.num_gcds,
            num_ipulink_segments=partition.num_segments,
            reconfigurable=partition.reconfigurable,
            gw_routing_type=partition.gw_routing,
            num_replicas=partition.num_replicas,
            allocation_id=partition.allocation,
        ),
        ready_state=partition.ready,
        ipuof_server_version=server_version(partition),
    )


def partition_options_message(partition: Partition) -> Message:
    """Return a ``PartitionOptions`` message."""
    return admin.PartitionOptions(
        partition_id=partition.id,
        disable_auto_reset=partition.disable_auto_reset,
        relocatable=partition.relocatable,
    )


def status_message(partition: Partition) -> Message:
    """Return a ``PartitionStatus`` message. Without automatic resets, it has no retries."""
    status = virmgrpc.PartitionStatus(
        partition_id=partition.id,
        ready_state=partition.ready,
        # The public API has no state for a machine that does not respond.
        operation_state=(Operation.FAILED if partition.operation is Operation.UNREACHABLE else partition.operation),
        errors=partition.errors,
        max_auto_reset_retries=0 if partition.disable_auto_reset else partition.max_retries,
        auto_reset_retry_count=partition.retries,
    )
    if partition.last_auto_reset is not None:
        status.last_auto_reset_time.FromNanoseconds(int(partition.last_auto_reset * 1_000_000) * 1_000)
    return status


def ipuof_config(partition: Partition, gcds: Sequence[int]) -> Message:
    """Return the ``PartitionConfig`` of some GCDs of a partition whose devices are known.

    Every IPU is one device of exactly one GCD. Of the attributes, only ``GCD Id`` and the name
    ``Fabric Reconfigurable`` are public.
    """
    config = virmgrpc.PartitionConfig(
        ipulink_routing_type=partition.routing,
        sync_type=partition.sync_type,
        reconfigurable=partition.reconfigurable,
        gw_routing_type=partition.gw_routing,
        num_ipulink_segments=partition.num_segments,
        ipuof_server_version=server_version(partition),
    )
    messages = {gcd: config.gcd_configs.add(attributes=_gcd_attributes(partition, gcd)) for gcd in gcds}
    for index, (ipu, device) in enumerate(zip(partition.ipus, partition.devices, strict=True)):
        message = messages.get(partition.gcd_of(index))
        if message is not None:
            message.devices.add(
                ip=device.ip,
                server_port=device.server_port,
                rdma_port=device.rdma_port,
                device_id=device.device_id,
                ipulink_segment_id=ipu.ild_routing_id,
                routing_id=ipu.routing_id,
                ipu_arch_id=device.ipu_arch_id,
                ipu_id=ipu.ipu,
                chip_id=device.chip_id,
                gwsw_version=device.gwsw_version,
                ipum_sw_version=device.ipum_sw_version,
            )
    return config


def _gcd_attributes(partition: Partition, gcd: int) -> dict[str, str]:
    attributes = {
        "GCD Id": str(gcd),
        "Number of GCDs": str(partition.num_gcds),
        "Number of replicas": str(partition.num_replicas),
        "Partition Id": partition.id,
        "Partition size": str(partition.size),
    }
    if partition.reconfigurable:
        attributes["Fabric Reconfigurable"] = "1"  # the form of flags in Graphcore's device attributes
    return attributes


def agent_spec(message: Message) -> AgentSpec:
    """Return the spec in an ``AgentSpec``. Raises RuleError."""
    service = out_of_service(message.service, message.id)
    return AgentSpec(message.id, message.host, message.port or AGENT_PORT, service, message.service_reason)


def out_of_service(number: int, agent: str) -> bool | None:
    """Return the requested state of service of an agent, None to keep it. Raises RuleError for an unknown number."""
    if number not in _OUT_OF_SERVICE:
        raise RuleError(
            Code.INVALID_ARGUMENT,
            f"Cannot change agent {quoted(agent)}: {number} is not a valid state of service. Omit it to keep it.",
        )
    return _OUT_OF_SERVICE[number]


def agent_message(agent: Agent, status: AgentStatus, cluster: str, allocation: str, *, facts: bool) -> Message:
    """Return an ``Agent`` message. ``facts``: include the facts about its machine."""
    message = admin.Agent(
        spec=admin.AgentSpec(
            id=agent.id,
            host=agent.host,
            port=agent.port,
            service=admin.SERVICE_STATE_OUT_OF_SERVICE if agent.out_of_service else admin.SERVICE_STATE_IN_SERVICE,
            service_reason=agent.service_reason,
        ),
        state=_AGENT_STATES[status.state],
        reason=status.reason,
        rejects=status.rejects,
        cluster_id=cluster,
        allocation_id=allocation,
    )
    if status.info is not None:
        message.num_ipus = status.info.num_ipus
        message.versions.update(status.info.versions)
        if facts:
            for fact in status.info.facts:
                message.facts.add(name=fact.name, value=fact.value)
            for ipu in status.info.ipus:
                added = message.ipus.add(ipu=ipu.ipu)
                for fact in ipu.facts:
                    added.facts.add(name=fact.name, value=fact.value)
    return message


def discovered_message(state: State, found: DiscoveredAgent) -> Message:
    """Return a ``DiscoveredAgent`` message."""
    return admin.DiscoveredAgent(
        host=found.host,
        port=found.port,
        network_interface=found.interface,
        seconds_since_last_seen=found.age,
        auto_add_id=found.auto_id,
        agent_id=state.endpoints.get((found.host, found.port), ""),
        conflict=auto_add.conflict(state, found),
    )


def drained_message(item: DrainedPartition) -> Message:
    """Return a ``DrainedPartition`` message."""
    return admin.DrainedPartition(
        partition_id=item.id,
        allocation_id=item.allocation,
        user_ids=item.users,
        moves=not item.reason,
        reason=item.reason,
        agent_ids=item.agents,
    )


def quarantined_message(share: QuarantinedShare) -> Message:
    """Return a ``QuarantinedShare`` message."""
    return admin.QuarantinedShare(
        agent_id=share.agent_id,
        partition_id=share.partition_id,
        ipus=share.ipus,
        deployment=share.deployment,
        epoch=share.epoch,
        releasing=share.releasing,
    )


def cluster_spec(message: Message) -> Cluster:
    """Return the record of a ``ClusterSpec``."""
    return Cluster(
        message.id,
        tuple(message.agent_ids),
        message.num_ilds or 1,
        _TOPOLOGIES.get(message.ipu_link_topology, cast(Topology, str(message.ipu_link_topology))),
        _GW_TOPOLOGIES.get(message.gw_link_topology, cast(GwTopology, str(message.gw_link_topology))),
    )


def cluster_message(cluster: Cluster, allocations: Sequence[str]) -> Message:
    """Return a ``Cluster`` message."""
    return admin.Cluster(
        spec=admin.ClusterSpec(
            id=cluster.id,
            agent_ids=cluster.agents,
            num_ilds=cluster.num_ilds,
            ipu_link_topology=2 if cluster.topology is Topology.TORUS else 1,
            gw_link_topology=1,
        ),
        allocation_ids=allocations,
    )


def allocation_spec(message: Message) -> AllocationSpec:
    """Return the spec in an ``AllocationSpec``."""
    return AllocationSpec(message.id, message.cluster_id, message.size, tuple(message.agent_ids))


def allocation_message(
    allocation: Allocation, partitions: Sequence[str], free_ipus: int, free_machines: Sequence[int]
) -> Message:
    """Return an ``Allocation`` message."""
    return admin.Allocation(
        spec=admin.AllocationSpec(
            id=allocation.id,
            cluster_id=allocation.cluster,
            size=len(allocation.agents),
            agent_ids=allocation.agents,
        ),
        partition_ids=partitions,
        free_machines=free_machines,
        free_ipus=free_ipus,
    )


def user_spec(message: Message) -> UserSpec:
    """Return the spec in a ``UserSpec``."""
    return UserSpec(
        message.id,
        _ROLES.get(message.role, cast(Role, str(message.role))),
        tuple(message.allocation_ids),
        message.all_allocations,
    )


def user_message(user: User) -> Message:
    """Return a ``UserSpec`` message. Keys and their hashes never leave the controller."""
    return admin.UserSpec(
        id=user.id,
        role=2 if user.role is Role.ADMIN else 1,
        allocation_ids=user.allocations,
        all_allocations=user.all_allocations,
    )


def certificate_message(certificate: Certificate) -> Message:
    """Return a ``Certificate`` message."""
    return admin.Certificate(
        key=certificate.key,
        serial=certificate.serial,
        not_after_unix=certificate.not_after,
        revoked=certificate.revoked,
    )
