# SPDX-License-Identifier: GPL-3.0-or-later
"""First ``pod.yml`` and ``machines.csv`` of a user, to edit. They are valid as written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from openipu.pod_files import ansible_settings, json_schema
from openipu.pod_files.files import PodFilesError
from openipu.twin.launch import generate

_SCHEMA = "pod.schema.json"
_SETTINGS = "ansible.cfg"
_COMMENT = "# Fail on mistakes in pod.yml. Ansible reads this file only in the current folder.\n"
_LOWEST_RACK_UNIT = 3
_NETWORKS = {"bmc": 1, "gw": 2, "rnic": 5}  # numbers of the networks of an IPU-Machine, in its invented MACs
_MACS = ("02:00:00:{:02x}:", "0c:42:a1:00:{:02x}:")  # start of the MACs of this module and of inventory/pod64
EXAMPLE_SERIAL = "8203921-"  # start of the serial numbers of inventory/pod64
_HEADER = "name,rack,unit,bmc_mac,gw_mac,rnic_mac,rack_unit"
_TOP = """\
# yaml-language-server: $schema={schema}
# Validate this file with 'openipu-pod validate', and rehearse it with 'openipu-pod rehearse'.
plugin: openipu.pod.pod
name: {name}

# Addresses are assigned by rule, unless 'address' or 'addresses' sets them: second octet by network, third by rack,
# fourth by device. Change the subnets to those of your site.
networks:
  bmc: {{vlan: 13, subnet: 10.1.0.0/16}}
  gw: {{vlan: 13, subnet: 10.2.0.0/16}}
  management: {{vlan: 99, subnet: 10.3.0.0/16}}
  data: {{vlan: 11, subnet: 10.5.0.0/16}}
  storage: {{vlan: 12}}

racks:
"""
_OBJECTS = """
# IPU-Links join the machines of a rack in a closed loop (torus) or not (mesh).
clusters:
{clusters}
allocations:
{allocations}
partitions:
  - {{id: first, allocation: team1, size: {size}}}
"""


def is_example_mac(interface: str, mac: str) -> bool:
    """Return whether the MAC of an interface of an IPU-Machine is one of an example."""
    return mac.startswith(tuple(start.format(_NETWORKS[interface]) for start in _MACS))


@dataclass(frozen=True)
class FirstPod:
    """Size of a first POD: racks with two PDUs, and one switch of each kind for every 16 machines."""

    name: str
    machines: tuple[int, ...]  # of each rack
    servers: tuple[int, ...]  # of each rack

    def write(self, folder: Path) -> list[Path]:
        """Write the files into a folder, and return their paths. Raises PodFilesError if one exists.

        An existing ``ansible.cfg`` is kept.
        """
        contents = {
            "pod.yml": self._pod(),
            "machines.csv": self._machines(),
            _SCHEMA: json.dumps(json_schema.pod(), indent=2) + "\n",
        }
        try:
            if not (folder / _SETTINGS).exists():
                contents[_SETTINGS] = _COMMENT + ansible_settings.INVENTORY
            paths = [folder / name for name in contents]
            for path in paths:
                if path.exists():
                    raise PodFilesError(f"Cannot write {path}: it exists. Name another folder. Nothing was changed.")
            folder.mkdir(parents=True, exist_ok=True)
            for path, text in zip(paths, contents.values(), strict=True):
                path.write_text(text)
        except OSError as error:
            raise PodFilesError(f"Cannot write {error.filename or folder}: {error.strerror}.") from None
        return paths

    def _pod(self) -> str:
        racks = range(1, len(self.machines) + 1)
        text = _TOP.format(schema=_SCHEMA, name=self.name) + "".join(self._rack(number) for number in racks)
        return text + _OBJECTS.format(
            clusters="\n".join(f"  - {{id: cl{number}, racks: [rack{number}], topology: torus}}" for number in racks),
            allocations="\n".join(
                f"  - {{id: team{number}, cluster: cl{number}, size: {size}}}"
                for number, size in enumerate(self.machines, 1)
            ),
            size=1 << min(self.machines[0] * 4, 16).bit_length() - 1,
        )

    def _rack(self, number: int) -> str:
        first = sum(self.servers[: number - 1]) + 1
        switches = "".join(
            f"      - {{name: {each['name']}, kind: {each['kind']}}}\n"
            for each in generate.switches(number, self.machines[number - 1])
        )
        roles = {1: "[controller, poplar]"}
        servers = "".join(
            f"      - {{name: server{server}, roles: {roles.get(server, '[poplar]')}}}\n"
            for server in range(first, first + self.servers[number - 1])
        )
        return (
            f"  - name: rack{number}\n    number: {number}\n"
            + (f"    servers:\n{servers}" if servers else "")
            + f"    switches:\n{switches}"
            f"    pdus:\n      - {{name: pdu{2 * number - 1}}}\n      - {{name: pdu{2 * number}}}\n"
        )

    def _machines(self) -> str:
        lines = [
            "# One line per IPU-Machine. Unit 1 is the lowest in the rack. Replace the MACs with those on the labels."
        ]
        lines.append(_HEADER)
        for rack, machines in enumerate(self.machines, 1):
            for unit in range(1, machines + 1):
                starts = (_MACS[0].format(number) for number in _NETWORKS.values())
                macs = ",".join(f"{start}{rack:02x}:{unit:02x}" for start in starts)
                name = f"ipum{sum(self.machines[: rack - 1]) + unit:02}"
                lines.append(f"{name},rack{rack},{unit},{macs},{unit + _LOWEST_RACK_UNIT - 1}")
        return "\n".join(lines) + "\n"
