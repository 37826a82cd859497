# SPDX-License-Identifier: GPL-3.0-or-later
"""Entities of a V-IPU controller as immutable records, and changes of them. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from openipu.shared.vipu import object_rules
from openipu.shared.vipu.ports import AGENT_PORT

IPUS_PER_MACHINE: int = object_rules.IPUS_PER_MACHINE


class Kind(enum.StrEnum):
    """Kinds of entities in the order of dependency, lowest first."""

    AGENT = "agent"
    CLUSTER = "cluster"
    ALLOCATION = "allocation"
    PARTITION = "partition"
    USER = "user"
    REVOKED_KEY = "revoked_key"  # not in the API: lists of certificates contain them

    # A kind equals its value, so both need the same hash. The hash of an enumeration is that of the name, and slow.
    __hash__ = str.__hash__


class Topology(enum.StrEnum):
    """Cabling of the IPU-Links of one IPU-Link domain."""

    MESH = "mesh"
    TORUS = "torus"


class GwTopology(enum.StrEnum):
    """Cabling of the GW-Links between IPU-Link domains."""

    LOOPED = "looped"


class Role(enum.StrEnum):
    """Permissions of a user: ADMIN may do everything, USER may use its allocations only."""

    USER = "user"
    ADMIN = "admin"


# The numbers of the next five enumerations are those of the public API.


class Routing(enum.IntEnum):
    """IPU-Link routing of a partition; UNDEFINED leaves the choice to the controller."""

    UNDEFINED = 0
    DNC = 1
    SWNC = 2
    BTNC = 3
    RINGSWNC = 4


class GwRouting(enum.IntEnum):
    """GW-Link routing of a partition; UNDEFINED for a partition in one IPU-Link domain."""

    UNDEFINED = 0
    RING = 2
    SWRING = 3


class SyncType(enum.IntEnum):
    """Synchronisation of a partition."""

    UNDEFINED = 0
    GS2_DEFAULT = 1
    GS2_INDEPENDENT_RAILS = 2
    POD_NATIVE_DEFAULT = 3
    POD_NATIVE_REPLICATED_PIPELINE = 4


class ReadyState(enum.IntEnum):
    """State of a partition for its users."""

    PENDING = 1
    ACTIVE = 2
    REMOVED = 3
    ERROR = 4


class Operation(enum.IntEnum):
    """Current operation of the controller on a partition."""

    IDLE = 1
    CREATING = 2
    REMOVING = 3
    RESETTING = 4
    FAILED = 5
    UNREACHABLE = 6  # a machine does not respond; its share may still run. The public API calls it FAILED.


@dataclass(frozen=True, slots=True)
class Agent:
    """V-IPU agent: the endpoint of one IPU-Machine.

    Nothing new is placed on a machine that is out of service. ``service_reason`` is the reason for administrators.
    """

    id: str
    host: str
    port: int = AGENT_PORT
    out_of_service: bool = False
    service_reason: str = ""  # empty for a machine in service

    kind = Kind.AGENT


@dataclass(frozen=True, slots=True)
class Cluster:
    """IPU-Machines cabled together; ``agents`` are in rack order from the bottom, grouped by IPU-Link domain."""

    id: str
    agents: tuple[str, ...]
    num_ilds: int = 1
    topology: Topology = Topology.MESH
    gw_topology: GwTopology = GwTopology.LOOPED

    kind = Kind.CLUSTER

    @property
    def machines_per_ild(self) -> int:
        """Number of IPU-Machines in each IPU-Link domain."""
        return len(self.agents) // self.num_ilds


@dataclass(frozen=True, slots=True)
class Allocation:
    """Physically consecutive IPU-Machines of one cluster, in cluster order: the tenant boundary."""

    id: str
    cluster: str
    agents: tuple[str, ...]

    kind = Kind.ALLOCATION


@dataclass(frozen=True, slots=True)
class PlacedIpu:
    """One IPU of a partition.

    ``ild`` and ``topology_id`` are its location: the IPU-Link domain in the cluster, and the IPU in
    that domain. The latter is 4 × position of the machine in the domain + number of the IPU on the machine.
    ``ild_routing_id`` and ``routing_id`` are its numbers in the partition: the IPU-Link segment, and
    the IPU in that segment.
    """

    ild: int
    ild_routing_id: int
    topology_id: int
    routing_id: int

    def position(self, machines_per_ild: int) -> int:
        """Return the position of its IPU-Machine in the agents of the cluster."""
        return self.ild * machines_per_ild + self.topology_id // IPUS_PER_MACHINE

    @property
    def ipu(self) -> int:
        """Number of the IPU on its machine, 0 to 3."""
        return self.topology_id % IPUS_PER_MACHINE


@dataclass(frozen=True, slots=True)
class Device:
    """Fabric address and versions of one IPU, as reported by its agent; in the order of ``Partition.ipus``."""

    ip: str
    server_port: int
    rdma_port: int
    device_id: int
    ipu_arch_id: int
    chip_id: str
    gwsw_version: str
    ipum_sw_version: str
    ipuof_server_version: str


@dataclass(frozen=True)
class Partition:
    """IPUs of one allocation, isolated from all others."""

    id: str
    allocation: str
    cluster: str
    ipus: tuple[PlacedIpu, ...]  # by IPU-Link segment, then routing id
    routing: Routing = Routing.DNC
    gw_routing: GwRouting = GwRouting.UNDEFINED
    sync_type: SyncType = SyncType.GS2_DEFAULT
    num_gcds: int = 1
    num_replicas: int = 1
    num_segments: int = 1
    reconfigurable: bool = False
    disable_auto_reset: bool = False
    relocatable: bool = False
    ready: ReadyState = ReadyState.PENDING
    operation: Operation = Operation.CREATING
    errors: tuple[str, ...] = ()
    max_retries: int = 3
    retries: int = 0
    last_auto_reset: float | None = None  # seconds since 1970
    devices: tuple[Device, ...] = ()  # empty until the agents report them

    kind = Kind.PARTITION

    @property
    def size(self) -> int:
        """Number of IPUs."""
        return len(self.ipus)

    def gcd_of(self, index: int) -> int:
        """Return the graph compilation domain of ``ipus[index]``: domains are equal runs of IPUs, in order."""
        return index * self.num_gcds // len(self.ipus)


@dataclass(frozen=True, slots=True)
class Certificate:
    """Client certificate of a user. A revoked one stays in the record, so that it is never accepted again."""

    key: str  # SHA-256 of the public key, in hex; a renewed certificate keeps it
    serial: str  # in hex
    not_after: int  # seconds since 1970
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class User:
    """User of a secure controller; the access key is stored as a salted hash only.

    ``shared_certificate``: until it has certificates of its own, the user may call with any that is not another's.
    ``all_allocations``: the user may use present and future allocations; ``allocations`` is then empty.
    """

    id: str
    role: Role
    allocations: tuple[str, ...]
    key_hash: str
    key_salt: str
    certificates: tuple[Certificate, ...] = ()
    shared_certificate: bool = False
    all_allocations: bool = False

    kind = Kind.USER


@dataclass(frozen=True, slots=True)
class RevokedKey:
    """Revoked key of a removed user, which no user can have again. ``id`` is the fingerprint."""

    id: str
    user: str
    serial: str
    not_after: int

    kind = Kind.REVOKED_KEY


Record = Agent | Cluster | Allocation | Partition | User | RevokedKey
_Record = TypeVar("_Record", bound=Record)


@dataclass(frozen=True, slots=True)
class Put:
    """Change that adds a record, or replaces the record with its id."""

    record: Record


@dataclass(frozen=True, slots=True)
class Delete:
    """Change that removes a record."""

    kind: Kind
    id: str


Change = Put | Delete


def sorted_by_id(table: Mapping[str, _Record]) -> list[_Record]:
    """Return the records of a table sorted by id: restarts and rejected batches do not change the order."""
    return sorted(table.values(), key=attrgetter("id"))
