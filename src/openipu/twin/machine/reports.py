# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that the twin of an IPU-Machine reports: identity, versions, devices and attributes of IPUs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from openipu.twin.cables.power import MACHINE_PER_BUSY_IPU
from openipu.vipu.agent.hardware import Facts, MachineInfo
from openipu.vipu.domain.model import IPUS_PER_MACHINE, Device
from openipu.vipu.metrics.address import PATH, PORT

# Component -> version. The version test compares these between machines.
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
# Ports on the RNIC of the IPUoF server of IPU 0; those of the other IPUs follow.
SERVER_PORT = 10100
RDMA_PORT = 10200
ARCH_ID = 2  # GC200
TILES = 1472
TILE_MEMORY = 638976  # bytes

# °C of an idle machine in a cool room, and the rise of an IPU and its board in a partition.
DIE_TEMPERATURE, BOARD_TEMPERATURE = 39.0, 30.0
DIE_HEATING, BOARD_HEATING = 16.0, 8.0
# W of one idle IPU; ``openipu.twin.cables.power`` has the values of the machine.
IDLE_POWER = 40.0


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports of one machine, which follow from its addresses, its serial number and its versions."""

    host: str
    rnic_address: str
    serial: str
    versions: Mapping[str, str]

    def machine_info(self) -> MachineInfo:
        """Return identity and versions."""
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

    def device(self, ipu: int) -> Device:
        """Return the device that clients of a partition use for an IPU."""
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

    def attributes(self, ipu: int, partition: str, *, failed: bool, temperature_offset: float) -> dict[str, str]:
        """Return the attributes of an IPU; ``partition`` is the id of its partition, or empty."""
        major, minor, patch = (*self._version("IPU firmware").split("."), "0", "0")[:3]
        busy = bool(partition)
        return {
            "architecture": "ipu2",
            "average board temp": f"{BOARD_TEMPERATURE + busy * BOARD_HEATING + temperature_offset:.1f} C",
            "average die temp": f"{DIE_TEMPERATURE + busy * DIE_HEATING + temperature_offset:.1f} C",
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
            "ipu state": "failed" if failed else "ready",
            "ipu utilisation": "0.00%",  # no program runs on a twin
            "number of tiles": str(TILES),
            "partition id": partition,
            "tile memory size (bytes)": str(TILE_MEMORY),
        }

    def _version(self, component: str) -> str:
        return self.versions.get(component, VERSIONS[component])

    def _chip_id(self, ipu: int) -> str:
        return hashlib.sha256(f"{self.serial}/{ipu}".encode()).hexdigest()[:16]

    def _board(self, ipu: int) -> str:
        """Return the serial number of the board of an IPU, as the IPU reports it; two IPUs share a board."""
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
