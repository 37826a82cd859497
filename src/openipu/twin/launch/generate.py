# SPDX-License-Identifier: GPL-3.0-or-later
"""Generator of POD inventories for the twin, from one rack to many: pod.yml, machines.csv and group_vars."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from openipu.shared.pod.model import DATA, MACHINES_PER_SWITCH, MANAGEMENT
from openipu.shared.vipu.ports import AGENT_PORT, CONTROLLER_PORT
from openipu.twin.devices import logins

_COLUMNS = ("name", "rack", "unit", "bmc_mac", "gw_mac", "rnic_mac", "rack_unit", "serial")
_LOWEST_RACK_UNIT = 3  # servers and switches are above the machines
# Default state folder of the twin, with its certificate authority.
_STATE = (
    "{{ lookup('ansible.builtin.env', 'TWIN_STATE_DIR')"
    " | default(lookup('ansible.builtin.env', 'PWD') ~ '/.twin', true) }}"
)


class PodWriter(Protocol):
    """Writer of an inventory, such as ``PodSize``."""

    def write(self, folder: Path, state: str) -> Path:
        """Write pod.yml and its other files; return the path of pod.yml. Raises OSError.

        ``state`` is the state folder of the twin.
        """


@dataclass(frozen=True)
class PodSize:
    """Size of a POD of equal racks, each of one IPU-Link domain with 1 to 32 IPU-Machines.

    Every ``ilds`` racks form a cluster with one allocation of all its machines. Networks are
    ``first_octet.(offset + x).0.0/16``. In every rack, half of the IPUs are in ``partitions`` partitions of equal
    size; the first of these is reconfigurable. With ``devices`` every rack has two switches and two PDUs.
    """

    racks: int = 1
    machines: int = 16
    ilds: int = 1  # a divisor of racks
    topology: str = "torus"
    partitions: int = 1
    first_octet: int = 127
    offset: int = 0
    controller_port: int = CONTROLLER_PORT
    agent_port: int = AGENT_PORT
    devices: bool = False

    def pod(self) -> dict[str, Any]:
        """Return the content of pod.yml."""
        size = max(1, self.machines * 2 // max(1, self.partitions))
        return {
            "plugin": "openipu.pod.pod",
            "name": f"twin-{self.racks}x{self.machines}",
            "agent_port": self.agent_port,
            "controller": {"server": "server1", "port": self.controller_port},
            "networks": {
                name: {"subnet": f"{self.first_octet}.{self.offset + number}.0.0/16"}
                for name, number in (("bmc", 1), ("gw", 2), ("management", 3), ("data", 5))
            },
            "racks": [
                {
                    "name": f"rack{rack}",
                    "number": rack,
                    **({"servers": [{"name": "server1", "roles": ["controller", "poplar"]}]} if rack == 1 else {}),
                    **(_devices(rack, self.machines) if self.devices else {}),
                }
                for rack in self._racks
            ],
            "clusters": [
                {
                    "id": f"cl{number}",
                    "racks": [f"rack{rack}" for rack in self._racks if self._cluster(rack) == number],
                    "topology": self.topology,
                    **({"num_ilds": self.ilds} if self.ilds > 1 else {}),
                }
                for number in self._clusters
            ],
            "allocations": [
                {"id": f"a{number}", "cluster": f"cl{number}", "size": self.machines * self.ilds}
                for number in self._clusters
            ],
            "partitions": [
                {
                    "id": f"p{rack}-{number}",
                    "allocation": f"a{self._cluster(rack)}",
                    "size": 1 << (size.bit_length() - 1),
                    **({"reconfigurable": True} if number == 1 else {}),
                }
                for rack in self._racks
                for number in range(1, self.partitions + 1)
            ],
        }

    def machine_rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of machines.csv, without its header."""
        rows = []
        for rack in self._racks:
            for unit in range(1, self.machines + 1):
                name = f"ag{unit:02}" if self.racks == 1 else f"ag.{rack:02}.{unit:02}"
                macs = [f"02:{network:02x}:00:00:{rack:02x}:{unit:02x}" for network in (1, 2, 5)]
                serial = f"8203921-{(rack - 1) * self.machines + unit:04}"
                rows.append((name, f"rack{rack}", unit, *macs, unit + _LOWEST_RACK_UNIT - 1, serial))
        return rows

    def write(self, folder: Path, state: str = _STATE) -> Path:
        """Write pod.yml, machines.csv and group_vars; return the path of pod.yml. Raises OSError.

        ``state`` is the state folder of the twin, as written to group_vars.
        """
        folder.mkdir(parents=True, exist_ok=True)
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(self.machine_rows())
        (folder / "machines.csv").write_text(table.getvalue())
        if self.devices:
            variables = folder / "group_vars"
            variables.mkdir(exist_ok=True)
            for group, content in logins.group_vars(state).items():
                (variables / f"{group}.yml").write_text(yaml.safe_dump(content, sort_keys=False))
        path = folder / "pod.yml"
        path.write_text(yaml.safe_dump(self.pod(), sort_keys=False))
        return path

    @property
    def _racks(self) -> range:
        return range(1, self.racks + 1)

    @property
    def _clusters(self) -> range:
        return range(1, self.racks // self.ilds + 1)

    def _cluster(self, rack: int) -> int:
        return (rack - 1) // self.ilds + 1


def switches(rack: int, machines: int) -> list[dict[str, str]]:
    """Return name and kind of the switches of a rack: one of each kind for every 16 machines."""
    return [
        {"name": f"{prefix}{rack}{suffix}", "kind": kind}
        for suffix in ("", "b")[: 2 if machines > MACHINES_PER_SWITCH else 1]
        for prefix, kind in (("tor", DATA), ("mgmt", MANAGEMENT))
    ]


def _devices(rack: int, machines: int) -> dict[str, Any]:
    return {
        "switches": switches(rack, machines),
        "pdus": [{"name": f"pdu{2 * rack - 1}"}, {"name": f"pdu{2 * rack}"}],
    }
