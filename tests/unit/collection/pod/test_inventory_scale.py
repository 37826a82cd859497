# SPDX-License-Identifier: GPL-3.0-or-later
"""Size of the inventory of one rack and of many: variables of hosts do not grow with the number of hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from openipu.twin.launch.generate import PodSize
from tests.unit.collection.pod.inventories import Inventory, parse

RACKS = (1, 8, 64)
HOSTS_PER_RACK = 20  # machines, switches and PDUs
# Longer names and numbers of many racks, such as 'ag.64.16' and 'rack64' instead of 'ag16' and 'rack1'.
LONGER_NAMES = 1.05


def many_racks(folder: Path, racks: int) -> Path:
    """Write a POD with one allocation and user per rack, and OpenStack."""
    shape = PodSize(racks=racks, partitions=4, devices=True)
    path = shape.write(folder)
    pod = yaml.safe_load(path.read_text())
    names: dict[str, list[str]] = {}
    for name, rack, *_ in shape.machine_rows():
        names.setdefault(rack, []).append(name)
    pod["allocations"] = [
        {"id": f"a{number}", "cluster": f"cl{number}", "machines": names[f"rack{number}"]}
        for number in range(1, racks + 1)
    ]
    # No tenants with VLANs of their own, because a port has the VLANs of all tenants of its device.
    pod["openstack"] = {}
    pod["users"] = [{"id": f"u{number}", "allocations": [f"a{number}"]} for number in range(1, racks + 1)]
    path.write_text(yaml.safe_dump(pod))
    return path


def sizes(inventory: Inventory) -> dict[str, int]:
    """Return the bytes of the variables of the largest host of each kind, and of the group all."""
    found = {"group": len(json.dumps(inventory.data["all"].get("vars", {})))}
    for variables in inventory.data["_meta"]["hostvars"].values():
        found[variables["pod_kind"]] = max(found.get(variables["pod_kind"], 0), len(json.dumps(variables)))
    return found


@pytest.mark.parametrize("options", [[], ["--export"]], ids=["list", "export"])
def test_variables_do_not_grow_with_the_racks(tmp_path, options):
    inventories = {racks: parse(many_racks(tmp_path / str(racks), racks), options=options) for racks in RACKS}
    hosts = {racks: len(inventory.data["_meta"]["hostvars"]) for racks, inventory in inventories.items()}
    assert hosts == {racks: racks * HOSTS_PER_RACK + 1 for racks in RACKS}
    per_host = {racks: inventory.size / hosts[racks] for racks, inventory in inventories.items()}
    assert per_host[64] <= per_host[8] * LONGER_NAMES <= per_host[1] * LONGER_NAMES**2, per_host
    largest = {racks: sizes(inventory) for racks, inventory in inventories.items()}
    assert largest[1].keys() == {"group", "machine", "server", "switch", "pdu"}
    for kind, size in largest[1].items():
        assert largest[64][kind] <= size * LONGER_NAMES, (kind, largest)
