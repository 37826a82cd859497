# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of one IPU-Machine (an IPU-M2000): what it tells of itself, what it holds, how it fails."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import INTERNAL_LINKS, CableKind

from openipu.twin.power import MACHINE_PER_BUSY_IPU
from openipu.twin.wiring import CHASSIS_PORTS, Place, Wiring
from openipu.vipu.agent.hardware import (
    CablePort,
    Facts,
    Hardware,
    HardwareError,
    LinkState,
    MachineInfo,
    Options,
    PartitionFault,
    Pulses,
    Share,
)
from openipu.vipu.metrics.exporter import PATH, PORT
from openipu.vipu.model import IPUS_PER_MACHINE, Device

# Component -> version: what the version test compares between machines.
VERSIONS = {
    "GWSW": "2.0.5",
    "HDF": "1.4.1",
    "IPU firmware": "2.4.4",
    "IPUoF server": "v1.3.3",
    "Runtime": "1.18.0",
    "Virm": "1.18.0",
}
IPUM_SOFTWARE = "2.0.0"
DRIVER = "1.0.58"
HDF_HASH = hashlib.sha1(f"hdf {VERSIONS['HDF']}".encode(), usedforsecurity=False).hexdigest()
# Where the IPUoF server of IPU 0 listens on the RNIC; those of the others follow.
SERVER_PORT = 10100
RDMA_PORT = 10200
ARCH_ID = 2  # GC200
TILES = 1472
TILE_MEMORY = 638976  # bytes

# Degrees Celsius at an idle machine in a cool room, and how much warmer an IPU and its board get in a partition.
DIE_TEMPERATURE, BOARD_TEMPERATURE = 39.0, 30.0
DIE_HEATING, BOARD_HEATING = 16.0, 8.0
# Watts of one IPU, as ``openipu.twin.power`` has it for the machine.
IDLE_POWER = 40.0

# Interface of the RNIC -> classes with priority flow control: one port is cabled, with all eight.
HEALTHY_PFC = {"eth1": tuple(range(8))}


def serial_for(agent_id: str) -> str:
    """A board serial number for a machine that was given none."""
    return f"8203921-{int(hashlib.sha256(agent_id.encode()).hexdigest(), 16) % 10_000:04d}"


class TwinHardware(Hardware):
    """One machine; what it tells follows from its serial number, its addresses and its wires.

    ``bring_up`` is how many seconds it takes to bring up a share: none unless a rehearsal wants some.
    ``agent_id`` is its name in ``wiring``; one that stands alone has nothing plugged in.
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
        """See the class."""
        self.host = host
        self.rnic_address = rnic_address
        self.serial = serial
        self.bring_up = bring_up
        self.agent_id = agent_id or host
        self.powered = True
        self.slowness = 0.0  # seconds by which every answer is late
        self.warmth = 0.0  # degrees by which everything in it is warmer than it should be
        self.versions = dict(VERSIONS)
        self.pfc = dict(HEALTHY_PFC)
        self.broken_links: set[str] = set()  # inside of the machine
        self.noisy_links: dict[str, int] = {}  # inside of it -> errors that it corrects in every run of traffic
        self._wiring = wiring or Wiring()
        self._wiring.machines[self.agent_id] = self
        self._pulses: dict[tuple[CableKind, int], int] = {}
        self._corrected: Counter[str] = Counter()  # errors by link, of all traffic since it started
        self._callbacks: list[Callable[[PartitionFault], None]] = []
        self._answers = asyncio.Event()
        self._answers.set()
        self.refusal = ""  # why it refuses to bring IPUs up
        self.reboot()

    def reboot(self) -> None:
        """Start anew: another boot id, nothing held, no fault."""
        self._boot_id = secrets.token_hex(8)
        self._shares: dict[str, Share] = {}
        self._failed: set[int] = set()
        self._pulses.clear()
        self._corrected.clear()
        self.heal()

    def heal(self) -> None:
        """Take back ``refusal`` and ``hang``; a failed IPU is cured by bringing it up again."""
        self.refusal = ""
        self._answers.set()

    def hang(self) -> None:
        """Answer nothing any more, and close nothing."""
        self._answers.clear()

    @property
    def hanging(self) -> bool:
        """Whether it answers nothing."""
        return not self._answers.is_set()

    def renew(self) -> None:
        """Be as it was delivered, but for what it holds."""
        self.heal()
        self.slowness = 0.0
        self.warmth = 0.0
        self.versions = dict(VERSIONS)
        self.pfc = dict(HEALTHY_PFC)
        self.broken_links.clear()
        self.noisy_links.clear()
        self._failed.clear()

    @property
    def failed_ipus(self) -> frozenset[int]:
        """IPUs that failed and were not brought up since."""
        return frozenset(self._failed)

    @property
    def internal_links(self) -> list[str]:
        """The names of the links inside of the machine."""
        return [f"internal{number}" for number in range(INTERNAL_LINKS)]

    @property
    def alive(self) -> bool:
        """Whether others find it at the other end of their cables."""
        return self.powered and not self.hanging

    def pulsed(self, kind: CableKind, port: int, count: int) -> None:
        """Sync pulses have arrived at a port."""
        self._pulses[kind, port] = self._pulses.get((kind, port), 0) + count

    def rewire(self, wiring: Wiring) -> None:
        """Ask another wiring from now on, which has taken over its cables."""
        self._wiring = wiring

    async def _react(self) -> None:
        """Answer no sooner than it can."""
        if self.slowness:
            await asyncio.sleep(self.slowness)
        await self._answers.wait()

    def use(self, link: str) -> None:
        """Let traffic run over one link."""
        self._carry(each for each in self._all_links() if each.link == link)

    def fail_ipu(self, ipu: int, reason: str) -> None:
        """Let an IPU fail now, under whatever partition holds it."""
        if not 0 <= ipu < IPUS_PER_MACHINE:
            raise ValueError(f"An IPU-Machine has IPUs 0 to {IPUS_PER_MACHINE - 1}, and no IPU {ipu}.")
        self._failed.add(ipu)
        for share in self._shares.values():
            if any(placed.ipu == ipu for placed in share.ipus):
                for callback in self._callbacks:
                    callback(PartitionFault(share.partition_id, ipu, reason))

    @property
    def partition_ids(self) -> list[str]:
        """The ids of all partitions that have IPUs here, whether or not the machine answers."""
        return sorted(self._shares)

    @property
    def busy_ipus(self) -> int:
        """How many IPUs are in partitions."""
        return sum(len(share.ipus) for share in self._shares.values())

    @property
    def boot_id(self) -> str:
        """A name of this start of the machine."""
        return self._boot_id

    async def info(self) -> MachineInfo:
        """Identity and versions."""
        await self._react()
        facts = (
            ("Exporter", f"http://{self.host}:{PORT}{PATH}"),
            ("Platform", "ipum-p2"),
            ("Manufacturer", "Graphcore"),
            ("Discovery Mode", "DM_GCDA"),
            ("Virm version", self._version("Virm")),
            ("Runtime version", self._version("Runtime")),
            ("Board serial number", self.serial),
            ("Part number", "GC-MK2-M2000-01"),
            ("GWSW Version", self._version("GWSW")),
            ("IPUoF server version", self._version("IPUoF server")),
            ("HDF Version", self._version("HDF")),
            ("HDF Hash", HDF_HASH),
            ("Num of IPUs", str(IPUS_PER_MACHINE)),
        )
        ipus = tuple(self._ipu_facts(ipu) for ipu in range(IPUS_PER_MACHINE))
        return MachineInfo(facts, ipus, dict(self.versions), self.rnic_address)

    async def ipu_attributes(self) -> Mapping[int, Mapping[str, str]]:
        """Attributes of all four IPUs."""
        await self._react()
        return {ipu: self._attributes(ipu) for ipu in range(IPUS_PER_MACHINE)}

    async def held(self) -> Sequence[str]:
        """The ids of all partitions that have IPUs here."""
        await self._answers.wait()  # the agent knows it, however slow the machine is
        return self.partition_ids

    async def configure(self, share: Share, reset: bool) -> tuple[Device, ...]:
        """Evict whatever else holds the IPUs, and bring them up unless the share is in place already."""
        await self._react()
        ipus = {placed.ipu for placed in share.ipus}
        self._check(share, ipus)
        in_place = self._shares.get(share.partition_id) == share and not ipus & self._failed
        if reset or not in_place:
            self._shares.pop(share.partition_id, None)
            for id, other in list(self._shares.items()):
                if any(placed.ipu in ipus for placed in other.ipus):
                    del self._shares[id]
            if self.refusal:
                raise HardwareError(self.refusal)
            boot_id = self._boot_id
            await asyncio.sleep(self.bring_up)
            await self._answers.wait()
            if boot_id != self._boot_id:
                raise HardwareError("the machine was restarted meanwhile")
            self._failed -= ipus
            self._shares[share.partition_id] = share
        return tuple(self._device(placed.ipu) for placed in share.ipus)

    async def release(self, partition_id: str) -> None:
        """Take a partition off this machine."""
        await self._react()
        self._shares.pop(partition_id, None)

    async def cables(self) -> Sequence[CablePort]:
        """All chassis ports."""
        await self._react()
        return [CablePort(place.kind, place.port, self._wiring.serial(place)) for place in self._places(CHASSIS_PORTS)]

    async def links(self) -> Sequence[LinkState]:
        """Every link, with all errors that it corrected since the start."""
        await self._react()
        return [LinkState(each.link, each.up, self._corrected[each.link]) for each in self._all_links()]

    async def train_links(self, kinds: Collection[CableKind]) -> Sequence[LinkState]:
        """The links inside, and one for every port of these kinds."""
        await self._react()
        links = self._inside() if CableKind.IPU_LINK in kinds else []
        wanted = [kind for kind in (CableKind.IPU_LINK, CableKind.GW_LINK) if kind in kinds]
        return links + [self._link(place) for place in self._places(wanted)]

    async def clear_sync(self) -> None:
        """Forget all sync pulses that arrived."""
        await self._react()
        self._pulses.clear()

    async def pulse_sync(self, pulses: Sequence[Pulses]) -> None:
        """Send pulses along the cables."""
        await self._react()
        for item in pulses:
            if item.kind is CableKind.IPU_LINK or item.port not in CHASSIS_PORTS[item.kind]:
                raise HardwareError(f"{item.kind} port {item.port} carries no sync")
            self._wiring.send(Place(self.agent_id, item.kind, item.port), item.count)

    async def read_sync(self) -> Sequence[Pulses]:
        """What arrived since ``clear_sync``."""
        await self._react()
        return [Pulses(kind, port, count) for (kind, port), count in sorted(self._pulses.items())]

    async def run_traffic(self, ports: Collection[int]) -> Sequence[LinkState]:
        """Traffic over some ports and the links inside."""
        await self._react()
        for port in sorted(set(ports).difference(CHASSIS_PORTS[CableKind.IPU_LINK])):
            raise HardwareError(f"there is no IPU-Link port {port}")
        links = self._inside() + [self._link(Place(self.agent_id, CableKind.IPU_LINK, port)) for port in sorted(ports)]
        self._carry(links)
        return links

    async def pfc_classes(self) -> Mapping[str, Sequence[int]]:
        """All eight classes on the cabled port of the RNIC, unless somebody changed them."""
        await self._react()
        return dict(self.pfc)

    def on_fault(self, callback: Callable[[PartitionFault], None]) -> None:
        """Call this for every fault from now on."""
        self._callbacks.append(callback)

    def _places(self, kinds: Collection[CableKind]) -> list[Place]:
        return [Place(self.agent_id, kind, port) for kind in kinds for port in CHASSIS_PORTS[kind]]

    def _link(self, place: Place) -> LinkState:
        name = f"gw{place.port}" if place.kind is CableKind.GW_LINK else str(place.port)
        return LinkState(name, self._wiring.trains(place), self._wiring.errors(place))

    def _all_links(self) -> list[LinkState]:
        return self._inside() + [self._link(place) for place in self._places((CableKind.IPU_LINK, CableKind.GW_LINK))]

    def _carry(self, links: Iterable[LinkState]) -> None:
        """Traffic runs over links."""
        self._corrected.update({each.link: each.corrected_errors for each in links if each.up})

    def _inside(self) -> list[LinkState]:
        return [
            LinkState(name, name not in self.broken_links, self.noisy_links.get(name, 0))
            for name in self.internal_links
        ]

    def _version(self, component: str) -> str:
        return self.versions.get(component, VERSIONS[component])

    def _check(self, share: Share, ipus: set[int]) -> None:
        if not ipus or len(ipus) != len(share.ipus) or not ipus <= set(range(IPUS_PER_MACHINE)):
            raise HardwareError(f"the share does not name different IPUs from 0 to {IPUS_PER_MACHINE - 1}")

    def _device(self, ipu: int) -> Device:
        return Device(
            ip=self.rnic_address,
            server_port=SERVER_PORT + ipu,
            rdma_port=RDMA_PORT + ipu,
            device_id=ipu,
            ipu_arch_id=ARCH_ID,
            chip_id=self._chip_id(ipu),
            gwsw_version=self._version("GWSW"),
            ipum_sw_version=IPUM_SOFTWARE,
            ipuof_server_version=self._version("IPUoF server"),
        )

    def _chip_id(self, ipu: int) -> str:
        return hashlib.sha256(f"{self.serial}/{ipu}".encode()).hexdigest()[:16]

    def _board(self, ipu: int) -> str:
        """The serial number of the board that carries an IPU, as the IPU knows it: two IPUs share one."""
        lot, _, number = self.serial.partition("-")
        return f"{number or '0000'}.{ipu // 2 + 1:04d}.{lot}"

    def _ipu_facts(self, ipu: int) -> Facts:
        return (
            ("PCI", str(ipu)),
            ("Device", f"GC200-{self._chip_id(ipu)[:8]}"),
            ("Firmware", self._version("IPU firmware")),
            ("Architecture", "ipu2"),
            ("Num Tiles", str(TILES)),
            ("Tile Memory", str(TILE_MEMORY)),
            ("Clock", "1330MHz"),
        )

    def _attributes(self, ipu: int) -> dict[str, str]:
        major, minor, patch = (*self._version("IPU firmware").split("."), "0", "0")[:3]
        partition = next(
            (id for id, share in self._shares.items() if any(placed.ipu == ipu for placed in share.ipus)), ""
        )
        busy = bool(partition)
        return {
            "architecture": "ipu2",
            "average board temp": f"{BOARD_TEMPERATURE + busy * BOARD_HEATING + self.warmth:.1f} C",
            "average die temp": f"{DIE_TEMPERATURE + busy * DIE_HEATING + self.warmth:.1f} C",
            "board ipu index": str(ipu % 2),
            "board serial number": self._board(ipu),
            "board type": "M2000",
            "chip id": self._chip_id(ipu),
            "clock": "1330MHz",
            "driver version": DRIVER,
            "firmware major version": major,
            "firmware minor version": minor,
            "firmware patch version": patch,
            "firmware version": self._version("IPU firmware"),
            "hexopt active size (bytes)": "268435456",
            "ipu power": f"{IDLE_POWER + busy * MACHINE_PER_BUSY_IPU:.1f} W",
            "ipu state": "failed" if ipu in self._failed else "ready",
            "ipu utilisation": "0.00%",  # no program runs on a twin
            "number of tiles": str(TILES),
            "partition id": partition,
            "tile memory size (bytes)": str(TILE_MEMORY),
        }


def create(options: Options) -> TwinHardware:
    """A machine that stands alone, for ``virm-agent --hardware twin``: nothing is plugged into it.

    Options: ``serial``, ``rnic-address`` (the agent's own address), ``bring-up-seconds`` (0), ``versions`` of
    components that differ from those of other twins (``GWSW=2.1.0,Virm=1.19.0``). Raises ValueError with a sentence.
    """
    values = dict(options.values)
    serial = values.pop("serial", "") or serial_for(f"{options.host}-{options.port}")
    rnic_address = values.pop("rnic-address", "") or options.host
    seconds = values.pop("bring-up-seconds", "0")
    versions = dict(pair.partition("=")[::2] for pair in values.pop("versions", "").split(",") if pair)
    if values:
        raise ValueError(
            f"The hardware 'twin' has no option {sorted(values)[0]!r}: it has serial, rnic-address, bring-up-seconds, "
            "versions."
        )
    if not all(component in VERSIONS and version for component, version in versions.items()):
        raise ValueError(f"versions are written like GWSW=2.1.0,Virm=1.19.0; components are {', '.join(VERSIONS)}.")
    try:
        bring_up = float(seconds)
        if not 0 <= bring_up <= 3600:
            raise ValueError
    except ValueError:
        raise ValueError(f"bring-up-seconds is a number from 0 to 3600, not {seconds!r}.") from None
    machine = TwinHardware(options.host, rnic_address, serial, bring_up=bring_up)
    machine.versions.update(versions)
    return machine
