# SPDX-License-Identifier: GPL-3.0-or-later
"""Order of a vPOD in the POD of inventory/pod64: vpod_create.yml, whose servers and ports are recorded."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.control_instance import fake_actions
from tests.integration.bringup.own_twin import BIN

NAME, TENANT = "v1", "research"
CONTROLLER_VM, POPLAR_VM = f"{NAME}-controller", f"{NAME}-poplar"
ORDER: dict[str, Any] = {
    "vpod_name": NAME,
    "vpod_tenant": TENANT,
    "vpod_ipus": 8,
    "vpod_poplar_server": "server2",
    "vpod_image": "debian",
    "vpod_flavor": "poplar.1of2",
    "openstack_connection": {"cloud": "none"},
}
# Replaces the requests of all modules. The rest of the collection is that of the checkout.
_FAKE = """

from tests.control_instance import fake_actions

TaskAction._runs_here = lambda action, task_vars: True
TaskAction._perform = fake_actions.perform
"""


@dataclass(frozen=True)
class Vm:
    """Server as the role requests it from Nova, and its ports in the order of its interfaces."""

    options: dict[str, Any]
    ports: list[dict[str, Any]]

    @property
    def user_data(self) -> str:
        return str(self.options["user_data"])


@dataclass(frozen=True)
class Order:
    """VMs of a new vPOD by name, and its shares as the role requests them from Manila."""

    vms: dict[str, Vm]
    shares: list[dict[str, Any]]


def order(folder: Path, **variables: Any) -> Order:
    """Run the playbook and return what it ordered. ``variables`` are those of the role, in addition to ``ORDER``."""
    record = folder / "calls.jsonl"
    record.unlink(missing_ok=True)
    done = subprocess.run(
        [
            *(BIN / "ansible-playbook", ROOT / "playbooks/vpod_create.yml", "-i", ROOT / "inventory/pod64/pod.yml"),
            *("--limit", "controllers[0]", "-e", json.dumps({**ORDER, **variables})),
        ],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(_collections(folder)),
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            fake_actions.CALLS: str(record),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = fake_actions.Calls(record)
    ports = calls.ports()
    servers = [server for call in calls.written("openstack_pod_server") for server in call["servers"]]
    vms = {
        server["name"]: Vm(server, [ports[f"{server['name']}-{port['name']}"] for port in server["networks"]])
        for server in servers
    }
    return Order(vms, [share for call in calls.written("openstack_pod_share") for share in call["shares"]])


def _collections(folder: Path) -> Path:
    """Return the path of a copy of the collection whose modules send no requests. All other files are links."""
    path = folder / "collections"
    copy = path / "ansible_collections/openipu/pod"
    if not copy.exists():
        replaced = Path("plugins/plugin_utils/action.py")
        for part in (*reversed(replaced.parents), replaced):
            if part == replaced:
                (copy / part).write_text((ROOT / part).read_text() + _FAKE)
                continue
            (copy / part).mkdir(parents=True, exist_ok=True)
            for entry in (ROOT / part).iterdir():
                if entry.relative_to(ROOT) not in (*replaced.parents, replaced) and not entry.name.startswith("."):
                    (copy / part / entry.name).symlink_to(entry)
    return path
