# SPDX-License-Identifier: GPL-3.0-or-later
"""A POD of hosts with systemd, as in the suite of bare hosts, and an AWX whose jobs reach them by SSH."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from openipu.vipu.tls import issue
from tests import ROOT
from tests.roles.role_hosts import hosts
from tests.unit.collection.awx.content import load
from tools.ee.image import USER, Image
from tools.ee.jobs import Controller
from tools.hosts.host_environment import HostEnvironment
from tools.hosts.image import USER as SSH_USER

from .desk import HOSTS, Desk, remove_collection

SOURCE = "inventory/bare-hosts/pod.yml"
CONTROLLER, MACHINE = "10.31.2.101", "10.31.2.11"  # addresses in the network gw
EXPOSED = "/exposed"  # folder of the site in jobs
WHEELS = ROOT / ".cache" / "wheelhouse"
_SHARED = ROOT / "extensions" / "molecule" / "shared"
# The environment of the hosts has the tree of control groups that podman mounts for a job.
_WITHOUT_GROUPS = (
    "unshare",
    "--mount",
    "--propagation=private",
    "sh",
    "-c",
    'umount /sys/fs/cgroup && exec "$@"',
    "sh",
)
_TLS = {"ca": "ca.crt", "certificate": "{}.crt", "key": "{}.key"}
_VARIABLES = {
    "all": {
        "ansible_python_interpreter": "/usr/bin/python3",
        "openipu_wheelhouse": f"{EXPOSED}-wheels",
        "vipu_metrics_token_file": f"{EXPOSED}/metrics.token",
    },
    "controllers": {
        "vipu_server_login_folder": f"{EXPOSED}/login",
        "vipu_server_backup_copy_folder": f"{EXPOSED}/backups",
        "vipu_server_agent_tls": {
            name: f"{EXPOSED}/agents/controller/{file.format('controller')}" for name, file in _TLS.items()
        },
        "management_server_networks": {"management": {"interface": "eth0"}, "gw": {"interface": "eth1"}},
        # The machine sets the clock of its containers.
        "time_set_clock": False,
        "time_servers": [],
    },
    "machines": {
        f"virm_agent_tls_{name}": f"{EXPOSED}/agents/server/{file.format('server')}" for name, file in _TLS.items()
    },
    # Containers have no bonds, VLANs, arrays and NFS.
    "poplar_servers": {"poplar_server_parts": ["users"]},
}


class Rack:
    """A controller, an IPU-Machine and a Poplar server without services. ``exposed``: folder that jobs can use."""

    def __init__(self, folder: Path) -> None:
        self.exposed = folder / "exposed"
        self._state = folder / "hosts"
        self._inventories = (_SHARED / "hosts.yml", ROOT / "inventory" / "bare-hosts" / "containers.yml")

    def start(self) -> None:
        """Start the hosts, and create the certificates of the agents."""
        done = hosts("up", state=self._state, seconds=900)
        assert done.returncode == 0, done.stdout
        self._play(_SHARED / "create.yml", *(f"--inventory={path}" for path in self._inventories))
        self._play(ROOT / "playbooks" / "openipu_wheelhouse.yml", f"-eopenipu_wheelhouse={WHEELS}")
        self.exposed.mkdir()
        issue.create(self.exposed / "agents", [MACHINE])
        user, group = map(int, USER.split(":"))
        for path in (self.exposed, *self.exposed.rglob("*")):
            os.chown(path, user, group)

    def stop(self) -> None:
        """Remove the hosts."""
        hosts("down", state=self._state)

    def run(self, *command: str, seconds: float = 300) -> str:
        """Run a command in the network of the hosts, and return its output."""
        done = hosts("run", *command, state=self._state, seconds=seconds)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def desk(self, image: Image, project: Path, folder: Path) -> Desk:
        """Return an AWX for the hosts. Its folder for jobs must exist."""
        remove_collection(project)
        variables = project / "inventory" / "bare-hosts" / "group_vars"
        shutil.rmtree(variables)
        variables.mkdir()
        for group, values in _VARIABLES.items():
            (variables / f"{group}.yml").write_text(yaml.safe_dump(values))
        environment = HostEnvironment(self._state)
        content = load(awx_pod_file=SOURCE)
        controller = Controller(
            image,
            project,
            folder,
            content.credential_types,
            exposed={self.exposed: EXPOSED, WHEELS: f"{EXPOSED}-wheels"},
            enter=lambda command: environment.command_line([*_WITHOUT_GROUPS, *command]),
        )
        key = environment.image.key.read_text()
        inputs = {HOSTS: {"username": SSH_USER, "ssh_key_data": key, "become_method": "sudo"}}
        return Desk(controller, inputs, content, SOURCE, local_hosts=False)

    def _play(self, playbook: Path, *options: str) -> None:
        self.run("ansible-playbook", str(playbook), *options, seconds=900)

    def administrate(self, *command: str) -> str:
        """Run vipu-admin at the controller as its first administrator, and return the output."""
        login = self.exposed / "login"
        files: Sequence[str] = [f"--ca-path={login}/ca.crt", f"--client-cert={login}/client.crt"]
        config = f"--config={login}/admin.vipu-cli.hcl"
        return self.run("vipu-admin", config, *files, f"--client-key={login}/client.key", *command)
