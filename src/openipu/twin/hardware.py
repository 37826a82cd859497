# SPDX-License-Identifier: GPL-3.0-or-later
"""The twin of one IPU-Machine (an IPU-M2000): what it tells of itself, what it holds, how it fails."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence

from ansible_collections.openipu.pod.plugins.module_utils.pod.topology import INTERNAL_LINKS, CableKind

from openipu.vipu.agent.hardware import (
    CablePort,
    Facts,
    Hardware,
    HardwareError,
    LinkState,
    MachineInfo,
    Options,
    PartitionFault,
    Share,
)
from openipu.vipu.model import IPUS_PER_MACHINE, Device

# The chassis ports of an IPU-M2000.
CHASSIS_PORTS = {
    CableKind.IPU_LINK: range(1, 9),
    CableKind.GW_LINK: range(1, 3),
    CableKind.SYNC_LINK: range(8),
}
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
EXPORTER_PORT = 2112
# Where the IPUoF server of IPU 0 listens on the RNIC; those of the others follow.
SERVER_PORT = 10100
RDMA_PORT = 10200
ARCH_ID = 2  # GC200
TILES = 1472
TILE_MEMORY = 638976  # bytes

ALL_PFC_CLASSES = tuple(range(8))


def serial_for(agent_id: str) -> str:
    """A board serial number for a machine that was given none."""
    return f"8203921-{int(hashlib.sha256(agent_id.encode()).hexdigest(), 16) % 10_000:04d}"


class TwinHardware(Hardware):
    """One machine; everything it tells follows from its serial number and addresses.

    ``bring_up`` is how many seconds it takes to bring up a share: none unless a rehearsal wants some.
    ``cables``: the ports that something is plugged into.
    """

    def __init__(
        self, host: str, rnic_address: str, serial: str, *, bring_up: float = 0.0, cables: Iterable[CablePort] = ()
    ) -> None:
        """See the class."""
        self.host = host
        self.rnic_address = rnic_address
        self.serial = serial
        self.bring_up = bring_up
        self._cables = {(cable.kind, cable.port): cable.serial for cable in cables}
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
    def boot_id(self) -> str:
        """A name of this start of the machine."""
        return self._boot_id

    async def info(self) -> MachineInfo:
        """Identity and versions."""
        await self._answers.wait()
        facts = (
            ("Exporter", f"http://{self.host}:{EXPORTER_PORT}/metrics"),
            ("Platform", "ipum-p2"),
            ("Manufacturer", "Graphcore"),
            ("Discovery Mode", "DM_GCDA"),
            ("Virm version", VERSIONS["Virm"]),
            ("Runtime version", VERSIONS["Runtime"]),
            ("Board serial number", self.serial),
            ("Part number", "GC-MK2-M2000-01"),
            ("GWSW Version", VERSIONS["GWSW"]),
            ("IPUoF server version", VERSIONS["IPUoF server"]),
            ("HDF Version", VERSIONS["HDF"]),
            ("HDF Hash", HDF_HASH),
            ("Num of IPUs", str(IPUS_PER_MACHINE)),
        )
        ipus = tuple(self._ipu_facts(ipu) for ipu in range(IPUS_PER_MACHINE))
        return MachineInfo(facts, ipus, VERSIONS, self.rnic_address)

    async def ipu_attributes(self) -> Mapping[int, Mapping[str, str]]:
        """Attributes of all four IPUs."""
        await self._answers.wait()
        return {ipu: self._attributes(ipu) for ipu in range(IPUS_PER_MACHINE)}

    async def held(self) -> Sequence[str]:
        """The ids of all partitions that have IPUs here."""
        await self._answers.wait()
        return self.partition_ids

    async def configure(self, share: Share, reset: bool) -> tuple[Device, ...]:
        """Evict whatever else holds the IPUs, and bring them up unless the share is in place already."""
        await self._answers.wait()
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
        await self._answers.wait()
        self._shares.pop(partition_id, None)

    async def cables(self) -> Sequence[CablePort]:
        """All chassis ports."""
        await self._answers.wait()
        return [
            CablePort(kind, port, self._cables.get((kind, port), ""))
            for kind, ports in CHASSIS_PORTS.items()
            for port in ports
        ]

    async def train_links(self) -> Sequence[LinkState]:
        """The links inside, and one per IPU-Link and GW-Link port, up when a cable is in it."""
        await self._answers.wait()
        links = [LinkState(f"internal{number}", True, 0) for number in range(INTERNAL_LINKS)]
        for kind, prefix in ((CableKind.IPU_LINK, ""), (CableKind.GW_LINK, "gw")):
            links += [LinkState(f"{prefix}{port}", (kind, port) in self._cables, 0) for port in CHASSIS_PORTS[kind]]
        return links

    async def pfc_classes(self) -> Mapping[str, Sequence[int]]:
        """All eight classes on the cabled port of the RNIC."""
        await self._answers.wait()
        return {"eth1": ALL_PFC_CLASSES}

    def on_fault(self, callback: Callable[[PartitionFault], None]) -> None:
        """Call this for every fault from now on."""
        self._callbacks.append(callback)

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
            gwsw_version=VERSIONS["GWSW"],
            ipum_sw_version=IPUM_SOFTWARE,
            ipuof_server_version=VERSIONS["IPUoF server"],
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
            ("Firmware", VERSIONS["IPU firmware"]),
            ("Architecture", "ipu2"),
            ("Num Tiles", str(TILES)),
            ("Tile Memory", str(TILE_MEMORY)),
            ("Clock", "1330MHz"),
        )

    def _attributes(self, ipu: int) -> dict[str, str]:
        major, minor, patch = VERSIONS["IPU firmware"].split(".")
        return {
            "architecture": "ipu2",
            "board ipu index": str(ipu % 2),
            "board serial number": self._board(ipu),
            "board type": "M2000",
            "chip id": self._chip_id(ipu),
            "clock": "1330MHz",
            "driver version": DRIVER,
            "firmware major version": major,
            "firmware minor version": minor,
            "firmware patch version": patch,
            "firmware version": VERSIONS["IPU firmware"],
            "hexopt active size (bytes)": "268435456",
            "ipu state": "failed" if ipu in self._failed else "ready",
            "number of tiles": str(TILES),
            "partition id": next(
                (id for id, share in self._shares.items() if any(placed.ipu == ipu for placed in share.ipus)), ""
            ),
            "tile memory size (bytes)": str(TILE_MEMORY),
        }


def create(options: Options) -> TwinHardware:
    """A machine that stands alone, for ``virm-agent --hardware twin``: nothing is plugged into it.

    Options: ``serial``, ``rnic-address`` (the agent's own address), ``bring-up-seconds`` (0).
    Raises ValueError with a sentence.
    """
    values = dict(options.values)
    serial = values.pop("serial", "") or serial_for(f"{options.host}-{options.port}")
    rnic_address = values.pop("rnic-address", "") or options.host
    seconds = values.pop("bring-up-seconds", "0")
    if values:
        raise ValueError(
            f"The hardware 'twin' has no option {sorted(values)[0]!r}: it has serial, rnic-address, bring-up-seconds."
        )
    try:
        bring_up = float(seconds)
        if not 0 <= bring_up <= 3600:
            raise ValueError
    except ValueError:
        raise ValueError(f"bring-up-seconds is a number from 0 to 3600, not {seconds!r}.") from None
    return TwinHardware(options.host, rnic_address, serial, bring_up=bring_up)
