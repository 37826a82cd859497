# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the controller, in contrast to the records that it stores (``model``). No I/O."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from openipu.shared.vipu.ports import AGENT_PORT
from openipu.vipu.domain import model
from openipu.vipu.domain.model import GwRouting, Kind, PlacedIpu, Role, Routing, SyncType

ClusterSpec = model.Cluster

# Command lines call the sync type of reconfigurable partitions "c2-compatible". The public API has
# no value of that name; this value represents it everywhere.
C2_COMPATIBLE = SyncType.GS2_DEFAULT


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """Requested agent.

    ``out_of_service``: None keeps the state of an existing agent; new agents are in service. An empty
    ``service_reason`` keeps the reason of an agent that stays out of service.
    """

    id: str
    host: str
    port: int = AGENT_PORT
    out_of_service: bool | None = None
    service_reason: str = ""

    kind = Kind.AGENT


@dataclass(frozen=True, slots=True)
class AllocationSpec:
    """Requested allocation: ``size`` IPU-Machines chosen by the controller, or ``agents``; neither: no change."""

    id: str
    cluster: str
    size: int = 0
    agents: tuple[str, ...] = ()

    kind = Kind.ALLOCATION


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """Requested partition.

    For zero and empty fields the controller chooses a value, or keeps that of an existing partition.
    ``disable_auto_reset`` and ``relocatable`` always apply.
    """

    id: str
    size: int  # IPUs; 0 with ``ipus``: their number
    allocation: str = ""
    cluster: str = ""
    routing: Routing = Routing.UNDEFINED
    num_segments: int = 0
    gw_routing: GwRouting = GwRouting.UNDEFINED
    sync_type: SyncType = SyncType.UNDEFINED
    num_gcds: int = 0
    num_replicas: int = 0
    reconfigurable: bool = False
    ipus: tuple[PlacedIpu, ...] = ()
    disable_auto_reset: bool = False
    relocatable: bool = False

    kind = Kind.PARTITION


@dataclass(frozen=True, slots=True)
class UserSpec:
    """Requested role and allocations of a user; a new user needs a ``model.User``, which contains its key."""

    id: str
    role: Role
    allocations: tuple[str, ...] = ()
    all_allocations: bool = False

    kind = Kind.USER


Spec = AgentSpec | model.Agent | model.Cluster | AllocationSpec | PartitionSpec | UserSpec | model.User


@dataclass(frozen=True, slots=True)
class Removal:
    """Requested removal of an object; ``force`` includes its dependents."""

    kind: Kind
    id: str
    force: bool = False


class Outcome(enum.StrEnum):
    """Outcome of one request."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
    FAILED = "failed"
    NOT_APPLIED = "not_applied"  # valid, but another item of its batch failed
