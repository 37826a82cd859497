# SPDX-License-Identifier: GPL-3.0-or-later
"""What callers ask of the controller, apart from what it makes of it (``model``). No I/O."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from openipu.vipu import model
from openipu.vipu.model import GwRouting, Kind, PlacedIpu, Role, Routing, SyncType

AgentSpec = model.Agent
ClusterSpec = model.Cluster

# Command lines call the sync type of reconfigurable partitions "c2-compatible"; the public API has
# no value of that name, and this one stands for it everywhere.
C2_COMPATIBLE = SyncType.GS2_DEFAULT


@dataclass(frozen=True, slots=True)
class AllocationSpec:
    """``size`` IPU-Machines that the controller picks, or these ``agents``; neither asks for no change."""

    id: str
    cluster: str
    size: int = 0
    agents: tuple[str, ...] = ()

    kind = Kind.ALLOCATION


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """Zero and empty fields leave the choice to the controller, and ask nothing of an existing partition.

    ``disable_auto_reset`` and ``relocatable`` are always meant as they stand.
    """

    id: str
    size: int  # IPUs; 0 with ``ipus``: as many as those
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
    """The role and the rights of a user; a new one needs a ``model.User``, which carries its key."""

    id: str
    role: Role
    allocations: tuple[str, ...] = ()

    kind = Kind.USER


Spec = model.Agent | model.Cluster | AllocationSpec | PartitionSpec | UserSpec | model.User


@dataclass(frozen=True, slots=True)
class Removal:
    """One object to remove; ``force`` takes what depends on it along."""

    kind: Kind
    id: str
    force: bool = False


class Outcome(enum.StrEnum):
    """What became of one thing that was asked for."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"
    FAILED = "failed"
    NOT_APPLIED = "not_applied"  # valid, but another item of its batch failed
