# SPDX-License-Identifier: GPL-3.0-or-later
"""What an agent needs of the IPU-Machine that it runs on: the interface every kind of hardware implements.

One implementation exists: the rack twin's (``openipu.twin.hardware``). Another is added as an entry
point of the group ``openipu.hardware``: a callable that takes ``Options`` and gives a ``Hardware``.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import CableKind

from openipu.vipu.model import Device, GwRouting, Routing, SyncType

ENTRY_POINTS = "openipu.hardware"

Facts = tuple[tuple[str, str], ...]  # (name, value) in the order in which they are shown


class HardwareError(Exception):
    """The machine cannot do what was asked; the text is a clause that says why ("IPU 2 does not boot")."""


@dataclass(frozen=True, slots=True)
class Options:
    """How an agent is reached, and the options of the hardware itself as the command line gave them."""

    host: str
    port: int
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """Identity and versions of a machine, as ``get agent`` shows them."""

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
    """The part of a partition that lives on this machine."""

    partition_id: str
    ipus: tuple[ShareIpu, ...]
    routing: Routing
    gw_routing: GwRouting
    sync_type: SyncType
    reconfigurable: bool


@dataclass(frozen=True, slots=True)
class CablePort:
    """What is plugged into one chassis port; the serial id is that of the cable, empty without one."""

    kind: CableKind
    port: int
    serial: str


@dataclass(frozen=True, slots=True)
class Pulses:
    """How many sync pulses a chassis port sent, or how many arrived there."""

    kind: CableKind  # a Sync-Link, or a GW-Link for the sync between IPU-Link domains
    port: int
    count: int


@dataclass(frozen=True, slots=True)
class LinkState:
    """A link: "5" is IPU-Link port 5, "gw1" GW-Link port 1, other names are inside the machine."""

    link: str
    up: bool
    corrected_errors: int


@dataclass(frozen=True, slots=True)
class PartitionFault:
    """An IPU failed under a partition after it was configured."""

    partition_id: str
    ipu: int
    reason: str


class Hardware(abc.ABC):
    """One IPU-Machine.

    The agent calls ``configure`` and ``release`` one at a time; everything else may be called while
    one of them runs. Whatever does not answer makes the agent silent, and so Down.
    """

    @property
    @abc.abstractmethod
    def boot_id(self) -> str:
        """A name of this start of the machine; after another one it holds no partition."""

    @abc.abstractmethod
    async def info(self) -> MachineInfo:
        """Identity and versions."""

    @abc.abstractmethod
    async def ipu_attributes(self) -> Mapping[int, Mapping[str, str]]:
        """IPU number -> attribute -> value."""

    @abc.abstractmethod
    async def held(self) -> Sequence[str]:
        """The ids of all partitions that have IPUs here."""

    @abc.abstractmethod
    async def configure(self, share: Share, reset: bool) -> tuple[Device, ...]:
        """Bring up IPUs and links for a share, and tell one device per IPU in the order of the share.

        Whatever else held those IPUs loses all that it has here. A share that is in place already is
        left alone and answered again, unless ``reset``. Raises HardwareError; the share then holds
        nothing here.
        """

    @abc.abstractmethod
    async def release(self, partition_id: str) -> None:
        """Take a partition off this machine; one that is not here is released already. Raises HardwareError."""

    @abc.abstractmethod
    async def cables(self) -> Sequence[CablePort]:
        """All chassis ports."""

    @abc.abstractmethod
    async def links(self) -> Sequence[LinkState]:
        """All links as they are, with the errors that they corrected since the machine started; disturbs nothing."""

    @abc.abstractmethod
    async def train_links(self, kinds: Collection[CableKind]) -> Sequence[LinkState]:
        """Train the links of these kinds; those inside of the machine belong to the IPU-Links.

        Raises HardwareError.
        """

    @abc.abstractmethod
    async def clear_sync(self) -> None:
        """Forget all sync pulses that arrived."""

    @abc.abstractmethod
    async def pulse_sync(self, pulses: Sequence[Pulses]) -> None:
        """Send pulses; they have arrived wherever they do when this returns. Raises HardwareError."""

    @abc.abstractmethod
    async def read_sync(self) -> Sequence[Pulses]:
        """What arrived at each port since ``clear_sync``; ports where nothing did may be left out."""

    @abc.abstractmethod
    async def run_traffic(self, ports: Collection[int]) -> Sequence[LinkState]:
        """Send traffic over these IPU-Link ports and the links inside, and count the errors that were corrected.

        Raises HardwareError.
        """

    @abc.abstractmethod
    async def pfc_classes(self) -> Mapping[str, Sequence[int]]:
        """Interface of the RNIC -> classes with priority flow control, 0 to 7."""

    @abc.abstractmethod
    def on_fault(self, callback: Callable[[PartitionFault], None]) -> None:
        """Call this, in the event loop, for every fault from now on."""


Factory = Callable[[Options], Hardware]


def load(name: str) -> Factory:
    """The kind of hardware of that name. Raises LookupError with a sentence."""
    found = {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}
    if name not in found:
        there = ", ".join(sorted(found)) or "none"
        raise LookupError(f"There is no hardware {name!r} installed (group {ENTRY_POINTS!r} has: {there}).")
    factory: Factory = found[name].load()
    return factory
