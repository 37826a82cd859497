# SPDX-License-Identifier: GPL-3.0-or-later
"""Two PODs in one inventory, each with its own twin and controller, on loopback."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from openipu.twin.launch.generate import PodSize
from tests import ROOT
from tests.integration.bringup.own_twin import BIN, OwnTwin, octet, run

MACHINES = 4
# Names of the PODs, each with the first octet of its addresses.
_OCTETS = {"north": 5, "south": 10}


@dataclass
class TwoPods:
    """The folder of an inventory with two PODs, and their twins by name."""

    inventory: Path
    twins: dict[str, OwnTwin]

    def playbook(self, name: str, *options: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a playbook with the inventory of both PODs."""
        command = (BIN / "ansible-playbook", ROOT / "playbooks" / name, "-i", self.inventory)
        return run(*command, *options, check=check, seconds=300)  # on a busy machine

    def up(self) -> None:
        """Start both twins, and create the same objects and partitions in each."""
        for name, each in self.twins.items():
            each.twin("up")
            for playbook in ("vipu_objects.yml", "partitions.yml"):
                self.playbook(playbook, "--limit", f"pod_{name}")

    def down(self) -> None:
        """Stop both twins."""
        for each in self.twins.values():
            each.twin("down")


def write(folder: Path) -> TwoPods:
    """Write two PODs whose devices, clusters and partitions have equal names."""
    inventory = folder / "pods"
    twins = {}
    for name, first in _OCTETS.items():
        offset = octet(first)
        path = PodSize(machines=MACHINES, offset=offset).write(inventory / name)
        pod = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**pod, "name": name, "shared_inventory": True}, sort_keys=False))
        twins[name] = OwnTwin(path, folder / f"state-{name}", offset)
    return TwoPods(inventory, twins)
