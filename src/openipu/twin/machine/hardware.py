# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of one IPU-Machine (an IPU-M2000): its partitions, its links and its failures."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from openipu.shared.pod.topology import INTERNAL_LINKS, CableKind
from openipu.twin.cables.wiring import CHASSIS_PORTS, Place, Wiring
from openipu.twin.machine.reports import VERSIONS, Reports
from openipu.vipu.agent.hardware import (
    CablePort,
    Hardware,
    HardwareError,
    LinkState,
    MachineInfo,
    Options,
    PartitionFault,
    Pulses,
    Share,
)
from openipu.vipu.domain.model import IPUS_PER_MACHINE, Device

# Interface of the RNIC -> classes with priority flow control: one port is cabled, with all eight.
HEALTHY_PFC = {"eth1": tuple(range(8))}


def serial_for(agent_id: str) -> str:
    """Return a board serial number for a machine without a configured one."""
    return f"8203921-{int(hashlib.sha256(agent_id.encode()).hexdigest(), 16) % 10_000:04d}"


class TwinHardware(Hardware):
    """One machine; its reports follow from its serial number, its addresses and its cables.

    ``bring_up`` is the duration of bringing up a share, in s; rehearsals set it.
    ``agent_id`` is its name in ``wiring``; without a wiring its ports are empty.
    """

    def __init__(
        self,
        host: str,
        rnic_address: str,
        serial: str,
        *,
        bring_up: float = 0.0,
        agent_id: str = "",
        wiring: Wiring | None = None,
    ) -> None:
        self.host = host
        self.rnic_address = rnic_address
        self.serial = serial
        self.bring_up = bring_up
        self.agent_id = agent_id or host
        self.powered = True
        self.response_delay = 0.0  # s, added to every response
        self.temperature_offset = 0.0  # °C, added to every temperature
        self.versions = dict(VERSIONS)
        self.pfc = dict(HEALTHY_PFC)
        self.broken_links: set[str] = set()  # internal links
        self.noisy_links: dict[str, int] = {}  # internal link -> errors that it corrects in every run of traffic
        self._wiring = wiring or Wiring()
        self._wiring.machines[self.agent_id] = self
        self._pulses: dict[tuple[CableKind, int], int] = {}
        self._corrected: Counter[str] = Counter()  # errors by link, in all traffic since boot
        self._callbacks: list[Callable[[PartitionFault], None]] = []
        self._responsive = asyncio.Event()
        self._responsive.set()
        self.rejection = ""  # reason for rejecting the bring-up of IPUs; empty: it brings them up
        self.reboot()

    def reboot(self) -> None:
        """Boot again: a new boot id, no partitions, no faults."""
        self._boot_id = secrets.token_hex(8)
        self._shares: dict[str, Share] = {}
        self._failed: set[int] = set()
        self._pulses.clear()
        self._corrected.clear()
        self.heal()

    def heal(self) -> None:
        """Undo ``rejection`` and ``hang``; a failed IPU recovers when it is brought up again."""
        self.rejection = ""
        self._responsive.set()

    def hang(self) -> None:
        """Stop responding, and keep all connections open."""
        self._responsive.clear()

    @property
    def hanging(self) -> bool:
        """True while the machine does not respond."""
        return not self._responsive.is_set()

    def restore(self) -> None:
        """Restore the delivered state, and keep the partitions."""
        self.heal()
        self.response_delay = 0.0
        self.temperature_offset = 0.0
        self.versions = dict(VERSIONS)
        self.pfc = dict(HEALTHY_PFC)
        self.broken_links.clear()
        self.noisy_links.clear()
        self._failed.clear()

    @property
    def failed_ipus(self) -> frozenset[int]:
        """IPUs that failed and were not brought up again."""
        return frozenset(self._failed)

    @property
    def internal_links(self) -> list[str]:
        """Names of the links inside the machine."""
        return [f"internal{number}" for number in range(INTERNAL_LINKS)]

    @property
    def alive(self) -> bool:
        """True while machines at the other ends of its cables detect it."""
        return self.powered and not self.hanging

    def receive_pulses(self, kind: CableKind, port: int, count: int) -> None:
        """Count sync pulses that arrived at a port."""
        self._pulses[kind, port] = self._pulses.get((kind, port), 0) + count

    def use_wiring(self, wiring: Wiring) -> None:
        """Replace the wiring by one that contains its cables."""
        self._wiring = wiring

    async def _delay(self) -> None:
        """Wait for the response delay, and until the machine responds."""
        if self.response_delay:
            await asyncio.sleep(self.response_delay)
        await self._responsive.wait()

    def run_link_traffic(self, link: str) -> None:
        """Run traffic over one link."""
        self._count_errors(each for each in self._all_links() if each.link == link)

    def fail_ipu(self, ipu: int, reason: str) -> None:
        """Make an IPU fail now, also while a partition uses it."""
        if not 0 <= ipu < IPUS_PER_MACHINE:
            raise ValueError(
                f"Cannot find IPU {ipu}: an IPU-Machine does not have it. Choose from 0 to {IPUS_PER_MACHINE - 1}."
            )
        self._failed.add(ipu)
        for share in self._shares.values():
            if any(placed.ipu == ipu for placed in share.ipus):
                for callback in self._callbacks:
                    callback(PartitionFault(share.partition_id, ipu, reason))

    @property
    def partition_ids(self) -> list[str]:
        """Ids of all partitions with IPUs here, whether or not the machine responds."""
        return sorted(self._shares)

    @property
    def busy_ipus(self) -> int:
        """Number of IPUs in partitions."""
        return sum(len(share.ipus) for share in self._shares.values())

    @property
    def boot_id(self) -> str:
        """Id of the current boot of the machine."""
        return self._boot_id

    async def info(self) -> MachineInfo:
        """Return identity and versions."""
        await self._delay()
        return self._reports.machine_info()

    async def ipu_attributes(self) -> Mapping[int, Mapping[str, str]]:
        """Return the attributes of all four IPUs."""
        await self._delay()
        placed = {each.ipu: id for id, share in self._shares.items() for each in share.ipus}
        return {
            ipu: self._reports.attributes(
                ipu, placed.get(ipu, ""), failed=ipu in self._failed, temperature_offset=self.temperature_offset
            )
            for ipu in range(IPUS_PER_MACHINE)
        }

    async def read_shares(self) -> Mapping[str, Collection[int]]:
        """Return the IPUs of all partitions here."""
        await self._responsive.wait()  # not delayed: the agent itself stores the shares
        return {id: [placed.ipu for placed in share.ipus] for id, share in self._shares.items()}

    async def configure(self, share: Share, reset: bool) -> tuple[Device, ...]:
        """Evict other partitions from the IPUs, and bring them up unless the share is in place."""
        await self._delay()
        ipus = {placed.ipu for placed in share.ipus}
        self._check(share, ipus)
        in_place = self._shares.get(share.partition_id) == share and not ipus & self._failed
        if reset or not in_place:
            self._shares.pop(share.partition_id, None)
            for id, other in list(self._shares.items()):
                if any(placed.ipu in ipus for placed in other.ipus):
                    del self._shares[id]
            if self.rejection:
                raise HardwareError(self.rejection)
            boot_id = self._boot_id
            await asyncio.sleep(self.bring_up)
            await self._responsive.wait()
            if boot_id != self._boot_id:
                raise HardwareError("the machine was restarted during the bring-up")
            self._failed -= ipus
            self._shares[share.partition_id] = share
        return tuple(self._reports.device(placed.ipu) for placed in share.ipus)

    async def release(self, partition_id: str) -> None:
        """Remove a partition from this machine."""
        await self._delay()
        self._shares.pop(partition_id, None)

    async def cables(self) -> Sequence[CablePort]:
        """Return all chassis ports."""
        await self._delay()
        return [CablePort(place.kind, place.port, self._wiring.serial(place)) for place in self._places(CHASSIS_PORTS)]

    async def links(self) -> Sequence[LinkState]:
        """Return every link, with all errors that it corrected since boot."""
        await self._delay()
        return [LinkState(each.link, each.up, self._corrected[each.link]) for each in self._all_links()]

    async def train_links(self, kinds: Collection[CableKind]) -> Sequence[LinkState]:
        """Train the internal links, and one link for every port of these kinds."""
        await self._delay()
        links = self._internal_states() if CableKind.IPU_LINK in kinds else []
        requested = [kind for kind in (CableKind.IPU_LINK, CableKind.GW_LINK) if kind in kinds]
        return links + [self._link(place) for place in self._places(requested)]

    async def clear_sync(self) -> None:
        """Reset the counters of received sync pulses."""
        await self._delay()
        self._pulses.clear()

    async def pulse_sync(self, pulses: Sequence[Pulses]) -> None:
        """Send pulses along the cables."""
        await self._delay()
        for item in pulses:
            if item.kind is CableKind.IPU_LINK or item.port not in CHASSIS_PORTS[item.kind]:
                raise HardwareError(f"{item.kind} port {item.port} carries no sync")
            self._wiring.send(Place(self.agent_id, item.kind, item.port), item.count)

    async def read_sync(self) -> Sequence[Pulses]:
        """Return the pulses received since ``clear_sync``."""
        await self._delay()
        return [Pulses(kind, port, count) for (kind, port), count in sorted(self._pulses.items())]

    async def run_traffic(self, ports: Collection[int]) -> Sequence[LinkState]:
        """Run traffic over some ports and the internal links."""
        await self._delay()
        for port in sorted(set(ports).difference(CHASSIS_PORTS[CableKind.IPU_LINK])):
            raise HardwareError(f"there is no IPU-Link port {port}")
        links = self._internal_states() + [
            self._link(Place(self.agent_id, CableKind.IPU_LINK, port)) for port in sorted(ports)
        ]
        self._count_errors(links)
        return links

    async def pfc_classes(self) -> Mapping[str, Sequence[int]]:
        """Return the PFC classes by RNIC interface; as delivered, all eight on the cabled one."""
        await self._delay()
        return dict(self.pfc)

    def on_fault(self, callback: Callable[[PartitionFault], None]) -> None:
        """Register a callback for every fault from now on."""
        self._callbacks.append(callback)

    def _places(self, kinds: Collection[CableKind]) -> list[Place]:
        return [Place(self.agent_id, kind, port) for kind in kinds for port in CHASSIS_PORTS[kind]]

    def _link(self, place: Place) -> LinkState:
        name = f"gw{place.port}" if place.kind is CableKind.GW_LINK else str(place.port)
        return LinkState(name, self._wiring.trains(place), self._wiring.errors(place))

    def _all_links(self) -> list[LinkState]:
        ports = self._places((CableKind.IPU_LINK, CableKind.GW_LINK))
        return self._internal_states() + [self._link(place) for place in ports]

    def _count_errors(self, links: Iterable[LinkState]) -> None:
        """Count the errors that one run of traffic over these links corrects."""
        self._corrected.update({each.link: each.corrected_errors for each in links if each.up})

    def _internal_states(self) -> list[LinkState]:
        return [
            LinkState(name, name not in self.broken_links, self.noisy_links.get(name, 0))
            for name in self.internal_links
        ]

    @property
    def _reports(self) -> Reports:
        return Reports(self.host, self.rnic_address, self.serial, self.versions)

    def _check(self, share: Share, ipus: set[int]) -> None:
        if not ipus or len(ipus) != len(share.ipus) or not ipus <= set(range(IPUS_PER_MACHINE)):
            raise HardwareError(f"the share must name different IPUs from 0 to {IPUS_PER_MACHINE - 1}")


def create(options: Options) -> TwinHardware:
    """Return a machine without cables, for ``virm-agent --hardware twin``.

    Options and defaults: ``serial`` (derived from the address), ``rnic-address`` (the agent's own address),
    ``bring-up-seconds`` (0), ``versions``. The versions are those of components that differ from other twins
    (``GWSW=2.1.0,Virm=1.19.0``). Raises ValueError with a one-line message.
    """
    values = dict(options.values)
    serial = values.pop("serial", "") or serial_for(f"{options.host}-{options.port}")
    rnic_address = values.pop("rnic-address", "") or options.host
    seconds = values.pop("bring-up-seconds", "0")
    versions = dict(pair.partition("=")[::2] for pair in values.pop("versions", "").split(",") if pair)
    if values:
        raise ValueError(
            f"Cannot create hardware 'twin': option {sorted(values)[0]!r} is unknown. "
            "Choose from serial, rnic-address, bring-up-seconds, versions."
        )
    if not all(component in VERSIONS and version for component, version in versions.items()):
        raise ValueError(
            "Cannot create hardware 'twin': a component of versions is unknown or has no version. "
            f"Write them like GWSW=2.1.0,Virm=1.19.0. Components: {', '.join(VERSIONS)}."
        )
    try:
        bring_up = float(seconds)
        if not 0 <= bring_up <= 3600:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"Cannot create hardware 'twin': bring-up-seconds {seconds!r} is invalid. Write a number from 0 to 3600."
        ) from None
    machine = TwinHardware(options.host, rnic_address, serial, bring_up=bring_up)
    machine.versions.update(versions)
    return machine
