# SPDX-License-Identifier: GPL-3.0-or-later
"""A POD of hosts with systemd, as in the suite of bare hosts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from openipu.vipu.tls import issue
from tests import ROOT
from tests.roles.role_hosts import hosts
from tools.hosts.host_environment import HostEnvironment

POD = ROOT / "inventory" / "bare-hosts"
MACHINE = "10.31.2.11"  # address in the network gw
WHEELS = ROOT / ".cache" / "wheelhouse"
_SHARED = ROOT / "extensions" / "molecule" / "shared"
_TLS = {"ca": "ca.crt", "certificate": "{}.crt", "key": "{}.key"}


class Rack:
    """A controller, an IPU-Machine and a Poplar server without services. ``exposed``: folder that jobs can use."""

    def __init__(self, folder: Path) -> None:
        self.exposed = folder / "exposed"
        self._state = folder / "hosts"
        self._inventories = (_SHARED / "hosts.yml", POD / "containers.yml")

    @property
    def environment(self) -> HostEnvironment:
        """Environment of the hosts."""
        return HostEnvironment(self._state)

    def start(self) -> None:
        """Start the hosts, and create the certificates of the agents."""
        done = hosts("up", state=self._state, seconds=900)
        assert done.returncode == 0, done.stdout
        self._play(_SHARED / "create.yml", *(f"--inventory={path}" for path in self._inventories))
        self._play(ROOT / "playbooks" / "openipu_wheelhouse.yml", f"-eopenipu_wheelhouse={WHEELS}")
        self.exposed.mkdir()
        issue.create(self.exposed / "agents", [MACHINE])

    def stop(self) -> None:
        """Remove the hosts."""
        hosts("down", state=self._state)

    def run(self, *command: str, seconds: float = 300) -> str:
        """Run a command in the network of the hosts, and return its output."""
        done = hosts("run", *command, state=self._state, seconds=seconds)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def administrate(self, *command: str) -> str:
        """Run vipu-admin at the controller as its first administrator, and return the output."""
        login = self.exposed / "login"
        files: Sequence[str] = [f"--ca-path={login}/ca.crt", f"--client-cert={login}/client.crt"]
        config = f"--config={login}/admin.vipu-cli.hcl"
        return self.run("vipu-admin", config, *files, f"--client-key={login}/client.key", *command)

    def _play(self, playbook: Path, *options: str) -> None:
        self.run("ansible-playbook", str(playbook), *options, seconds=900)


def write_variables(inventory: Path, exposed: str, wheels: str, **more: Mapping[str, Any]) -> None:
    """Replace the variables of a copy of the inventory.

    Args:
        inventory: folder of the copy.
        exposed: path of the exposed folder in jobs.
        wheels: path of the folder with wheels in jobs.
        more: further variables of groups.
    """
    variables = inventory / "group_vars"
    shutil.rmtree(variables)
    variables.mkdir()
    for group, values in _variables(exposed, wheels).items():
        (variables / f"{group}.yml").write_text(yaml.safe_dump({**values, **more.get(group, {})}))


def _variables(exposed: str, wheels: str) -> dict[str, dict[str, Any]]:
    controller = {name: f"{exposed}/agents/controller/{file.format('controller')}" for name, file in _TLS.items()}
    server = {
        f"virm_agent_tls_{name}": f"{exposed}/agents/server/{file.format('server')}" for name, file in _TLS.items()
    }
    return {
        "all": {
            "ansible_python_interpreter": "/usr/bin/python3",
            "openipu_wheelhouse": wheels,
            "vipu_metrics_token_file": f"{exposed}/metrics.token",
        },
        "controllers": {
            "vipu_server_login_folder": f"{exposed}/login",
            "vipu_server_backup_copy_folder": f"{exposed}/backups",
            "vipu_server_agent_tls": controller,
            "management_server_networks": {"management": {"interface": "eth0"}, "gw": {"interface": "eth1"}},
            # The machine sets the clock of its containers.
            "time_set_clock": False,
            "time_servers": [],
        },
        "machines": server,
        # Containers have no bonds, VLANs, arrays and NFS.
        "poplar_servers": {"poplar_server_parts": ["users"]},
    }
