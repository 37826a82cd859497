# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of pages about hosts work as printed, on a host with systemd that has the name and address on them."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.docs.blocks import Block, blocks, commands
from tests.docs.shell import Shell, run_block
from tests.roles.role_hosts import hosts
from tools.hosts.host_environment import HostEnvironment

SHARED = ROOT / "extensions/molecule/shared"
CONTAINERS = """
containers:
  vars: {host_subnets: {management: 10.1.3.0/24, gw: 10.1.2.0/24}, host_prefix: ""}
  hosts:
    server1: {host_networks: {management: 10.1.3.101, gw: 10.1.2.101}}
"""
# The POD of the pages with one server and one IPU-Machine, which is not there.
POD = """
plugin: openipu.pod.pod
name: pod64
networks:
  bmc: {subnet: 10.1.1.0/24}
  gw: {subnet: 10.1.2.0/24}
  management: {subnet: 10.1.3.0/24}
  data: {subnet: 10.1.5.0/24}
racks:
  - {name: rack1, number: 1, servers: [{name: server1, roles: [controller, poplar]}]}
deploy: {controllers: [common, vipu_server]}
"""
VARIABLES = """
ansible_python_interpreter: /usr/bin/python3
common_ansible_sources: [10.1.3.0/24]
management_server_networks: {management: {interface: eth0}, gw: {interface: eth1}}
monitoring_storage_size: 1GB
openipu_wheelhouse: "{{ inventory_dir }}/wheelhouse"
# Containers have no bonds, VLANs, arrays and NFS, and the machine sets their clock.
poplar_server_parts: [users]
time_set_clock: false
time_servers: []
"""
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8hKF1Jrj1t0Yq0S9Yk0k0sJm1n0p7Q2r3s4t5u6v7w ipuuser\n"
BACKUP = "vipu-20261121T031700.000000Z.tar.gz"
SECONDS = 900
VIPU_SERVER = "roles/vipu_server/README.md"
# The role common closes ports, so its page is the last one.
PAGES = (
    "roles/openipu/README.md",
    "docs/how-to/controller-host.md",
    VIPU_SERVER,
    "docs/how-to/management-server.md",
    "docs/how-to/poplar-servers.md",
    "docs/how-to/monitoring.md",
    "docs/how-to/hosts.md",
)

pytestmark = pytest.mark.timeout(2400)  # services are installed one after the other


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A shell in the folder of the POD, in the network of its host."""
    environment = HostEnvironment(tmp_path / "hosts")
    started = hosts("up", state=environment.state, seconds=SECONDS)
    assert started.returncode == 0, started.stdout
    folder, home = tmp_path / "pod64", tmp_path / "home"
    for each in (folder, folder / "group_vars", folder / "keys", home):
        each.mkdir()
    made = Shell(folder, home, environment.variables(), own_network=False, enter=environment.command_line([]))
    try:
        (folder / "containers.yml").write_text(CONTAINERS)
        made.run(f"cd {folder}; ansible-playbook {SHARED}/create.yml -i {SHARED}/hosts.yml -i containers.yml", SECONDS)
        # Podman adds a default route for each network. The host must use the management network.
        made.run("podman exec server1 ip route delete default via 10.1.2.1", 60)
        yield made
    finally:
        made.kill()
        made.close()
        hosts("down", state=environment.state)


def test_the_commands_of_the_pages_work(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "pod64"
    write_inventory(folder)
    for page in PAGES:
        for block in commands(ROOT / page):
            if not block.not_run:
                run_block(adapted(block, folder), shell, SECONDS)
    # Now the host has a firewall, with the rule that the page shows for the control node.
    run_block(next(block for block in commands(ROOT / VIPU_SERVER) if ":2112/metrics" in block.text), shell)


def write_inventory(folder: Path) -> None:
    """Write the POD with the variables that the pages show."""
    (folder / "pod.yml").write_text(POD)
    lines = (ROOT / "inventory/pod64/machines.csv").read_text().splitlines(keepends=True)
    (folder / "machines.csv").write_text("".join(lines[:3]))  # header and first machine
    (folder / "keys/ipuuser.pub").write_text(KEY)
    users = shown("docs/how-to/poplar-servers.md", "poplar_server_users")["poplar_server_users"]
    [rule] = shown(VIPU_SERVER, "common_allow")["common_allow"]
    given = yaml.safe_load(VARIABLES)
    allow = [{**rule, "sources": given["common_ansible_sources"]}]
    variables = {**given, "poplar_server_users": users, "common_allow": allow}
    (folder / "group_vars/all.yml").write_text(yaml.safe_dump(variables))
    connection = shown(VIPU_SERVER, "vipu_login")
    (folder / "group_vars/controllers.yml").write_text(yaml.safe_dump(connection))


def shown(page: str, name: str) -> dict[str, Any]:
    """Return the variables that a page shows with this one."""
    found = (yaml.safe_load(block.text) for block in blocks(ROOT / page) if block.language == "yaml")
    return next(values for values in found if isinstance(values, dict) and name in values)


def adapted(block: Block, folder: Path) -> Block:
    """Return a block as the reader runs it here: on the host, or with the name of the own backup."""
    if block.text.startswith("amtool"):
        return replace(block, text=f"podman exec server1 sh -euc {shlex.quote(block.text)}\n")
    if BACKUP in block.text:
        [made] = (folder / "backups").rglob("*.tar.gz")
        shutil.copy(made, folder / "backups" / BACKUP)
        # Those of the page are for an empty host.
        return replace(block, text=block.text.rstrip() + " -e vipu_server_restore_overwrite=true\n")
    return block
