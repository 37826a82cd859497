# SPDX-License-Identifier: GPL-3.0-or-later
"""Hardware interface of an agent: all kinds of IPU-Machines implement it.

The rack twin has the only implementation so far (``openipu.twin.machine.hardware``). To add one, register an
entry point in the group ``openipu.hardware``: a callable that takes ``Options`` and returns a ``Hardware``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

from openipu.shared.pod.topology import CableKind
from openipu.vipu.domain.model import Device, GwRouting, Routing, SyncType

ENTRY_POINTS = "openipu.hardware"

Facts = tuple[tuple[str, str], ...]  # (name, value) in display order


class HardwareError(Exception):
    """Raised when the machine cannot do an operation. The text is a clause ("IPU 2 does not boot")."""

    error_code = "OPU617"


@dataclass(frozen=True, slots=True)
class Options:
    """Address of an agent, and the options of its hardware from the command line."""

    host: str
    port: int
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """Identity and versions of a machine, as shown by ``get agent``."""

    facts: Facts
    ipus: tuple[Facts, ...]  # one per IPU, by its number
    versions: Mapping[str, str]  # component -> version; the same components on every machine of a kind
    rnic_address: str


@dataclass(frozen=True, slots=True)
class ShareIpu:
    """One IPU of this machine in a partition."""

    ipu: int  # 0 to 3
    routing_id: int
    segment_id: int
    gcd_id: int


@dataclass(frozen=True, slots=True)
class Share:
    """Part of a partition on this machine."""

    partition_id: str
    ipus: tuple[ShareIpu, ...]
    routing: Routing
    gw_routing: GwRouting
    sync_type: SyncType
    reconfigurable: bool


@dataclass(frozen=True, slots=True)
class CablePort:
    """Chassis port with the serial id of its cable, empty without cable."""

    kind: CableKind
    port: int
    serial: str


@dataclass(frozen=True, slots=True)
class Pulses:
    """Number of sync pulses that a chassis port sent or received."""

    kind: CableKind  # a Sync-Link, or a GW-Link for the sync between IPU-Link domains
    port: int
    count: int


@dataclass(frozen=True, slots=True)
class LinkState:
    """State of a link: "5" is IPU-Link port 5, "gw1" GW-Link port 1; other links are inside the machine."""

    link: str
    up: bool
    corrected_errors: int


@dataclass(frozen=True, slots=True)
class PartitionFault:
    """Failure of an IPU of a configured partition."""

    partition_id: str
    ipu: int
    reason: str


class Hardware(abc.ABC):
    """One IPU-Machine.

    The agent calls ``configure`` and ``release`` one at a time. Other methods may run at the same time.
    When ``read_shares`` or ``info`` hang, the agent stops sending heartbeats and is Down.
    """

    @property
    @abc.abstractmethod
    def boot_id(self) -> str:
        """Id of the current boot of the machine. After a new boot it holds no partition."""

    @abc.abstractmethod
    async def info(self) -> MachineInfo:
        """Return identity and versions."""

    @abc.abstractmethod
    async def ipu_attributes(self) -> Mapping[int, Mapping[str, str]]:
        """Return IPU number -> attribute -> value."""

    @abc.abstractmethod
    async def read_shares(self) -> Mapping[str, Collection[int]]:
        """Return partition -> numbers of its IPUs, for all partitions with IPUs on this machine."""

    @abc.abstractmethod
    async def configure(self, share: Share, reset: bool) -> tuple[Device, ...]:
        """Bring up IPUs and links for a share. Return one device per IPU, in the order of the share.

        Other partitions that hold these IPUs lose all their IPUs on this machine. A share that is already
        configured stays unchanged, unless ``reset``. Raises HardwareError; the share then holds no IPU
        of this machine.
        """

    @abc.abstractmethod
    async def release(self, partition_id: str) -> None:
        """Release a partition on this machine. An unknown partition is not an error. Raises HardwareError."""

    @abc.abstractmethod
    async def cables(self) -> Sequence[CablePort]:
        """Return all chassis ports."""

    @abc.abstractmethod
    async def links(self) -> Sequence[LinkState]:
        """Return all links with the errors corrected since the machine started. Does not disturb traffic."""

    @abc.abstractmethod
    async def train_links(self, kinds: Collection[CableKind]) -> Sequence[LinkState]:
        """Train the links of these kinds and return them. Internal links are part of the IPU-Links.

        Raises HardwareError.
        """

    @abc.abstractmethod
    async def clear_sync(self) -> None:
        """Reset the counters of received sync pulses."""

    @abc.abstractmethod
    async def pulse_sync(self, pulses: Sequence[Pulses]) -> None:
        """Send pulses and return after they have arrived. Raises HardwareError."""

    @abc.abstractmethod
    async def read_sync(self) -> Sequence[Pulses]:
        """Return the pulses received at each port since ``clear_sync``. Ports without pulses may be omitted."""

    @abc.abstractmethod
    async def run_traffic(self, ports: Collection[int]) -> Sequence[LinkState]:
        """Send traffic over these IPU-Link ports and the internal links. Return the links with corrected errors.

        Raises HardwareError.
        """

    @abc.abstractmethod
    async def pfc_classes(self) -> Mapping[str, Sequence[int]]:
        """Return interface of the RNIC -> classes with priority flow control, from 0."""

    @abc.abstractmethod
    def on_fault(self, callback: Callable[[PartitionFault], None]) -> None:
        """Register a callback for faults, called in the event loop."""


Factory = Callable[[Options], Hardware]


def load(name: str) -> Factory:
    """Return the factory of a kind of hardware. Raises LookupError with a message for users."""
    found = {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}
    if name not in found:
        names = ", ".join(sorted(found)) or "none"
        raise LookupError(
            f"Cannot load hardware {name!r}: it is not installed. "
            f"Install it, or choose from the entry points {ENTRY_POINTS!r}: {names}."
        )
    factory: Factory = found[name].load()
    return factory
