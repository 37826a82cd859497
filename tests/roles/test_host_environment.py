# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment of the hosts: hosts work like machines, and removal leaves no traces."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.roles.role_hosts import hosts
from tools.hosts.host_environment import HostEnvironment

NETWORK = f"10.30.{250 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])}."  # not used by other workers
ADDRESS = f"{NETWORK}11"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Environment with one host."""
    state = tmp_path_factory.mktemp("hosts") / "environment"
    result = hosts("up", state=state, seconds=600)
    assert result.returncode == 0, result.stdout
    start = (
        f"podman network create --subnet={NETWORK}0/24 n && "
        f"podman run --detach --name=h --hostname=h --systemd=always --cap-add=all --network=n --ip={ADDRESS} "
        "--security-opt=seccomp=unconfined --security-opt=apparmor=unconfined --security-opt=unmask=ALL "
        '"$HOSTS_IMAGE" /sbin/init'
    )
    try:
        result = hosts("run", "sh", "-c", start, state=state)
        assert result.returncode == 0, result.stdout
        assert wait_until_running(state) == "running"
        yield state
    finally:
        hosts("down", state=state)


def wait_until_running(state: Path) -> str:
    """Wait for the init of the host and return its state."""
    deadline = time.monotonic() + 60
    while True:
        result = hosts("run", "podman", "exec", "h", "systemctl", "is-system-running", "--wait", state=state)
        status = result.stdout.strip()
        if status in ("running", "degraded") or time.monotonic() > deadline:
            return status


def traces(state: Path) -> list[str]:
    """Return the processes, mounts, firewall rules and networks of an environment that the machine lists."""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    lines += Path("/proc/self/mounts").read_text().splitlines()
    for command in ("iptables-save", "ip -br address"):
        lines += subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if str(state) in line or NETWORK in line]


def control_groups(state: Path) -> list[Path]:
    """Return the control group of an environment, in each mounted tree of control groups."""
    trees = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if " cgroup2 " in line]
    assert trees, "the machine has no tree of control groups"
    return [group for tree in trees if (group := Path(tree) / HostEnvironment(state).group).exists()]


def test_a_host_has_an_init_names_and_ssh(environment: Path) -> None:
    for command in (
        ["podman", "exec", "h", "systemctl", "is-active", "ssh.service"],
        ["podman", "exec", "h", "sysctl", "-w", "net.ipv4.ip_forward=1"],
        ["podman", "exec", "h", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        ["podman", "exec", "h", "getent", "hosts", "h"],
        ["ansible", "all", "-i", f"{ADDRESS},", "--become", "-m", "ansible.builtin.ping"],
    ):
        done = hosts("run", *command, state=environment)
        assert done.returncode == 0, f"{command}: {done.stdout}"


def test_a_host_keeps_its_files_on_restart(environment: Path) -> None:
    assert hosts("run", "podman", "exec", "h", "touch", "/root/kept", state=environment).returncode == 0
    assert hosts("run", "podman", "restart", "h", state=environment).returncode == 0
    assert wait_until_running(environment) == "running"
    result = hosts("run", "podman", "exec", "h", "sh", "-c", "ls /root/kept && hostname -I", state=environment)
    assert result.stdout.split() == ["/root/kept", ADDRESS]


def test_a_host_has_no_disks_of_the_machine(environment: Path) -> None:
    disks = [disk.device for disk in psutil.disk_partitions() if disk.device.startswith("/dev/")]
    assert disks
    for disk in disks:
        assert hosts("run", "podman", "exec", "h", "test", "-e", disk, state=environment).returncode == 1


def test_the_machine_has_no_access_to_the_network_of_the_hosts(environment: Path) -> None:
    links = subprocess.run(["ip", "-br", "address"], capture_output=True, text=True, check=True).stdout
    assert NETWORK not in links
    assert NETWORK in hosts("run", "ip", "-br", "address", state=environment).stdout


def test_down_removes_everything(environment: Path) -> None:
    assert traces(environment)
    assert control_groups(environment)
    result = hosts("down", state=environment)
    assert result.returncode == 0, result.stdout
    assert not environment.exists()
    assert traces(environment) == []
    assert control_groups(environment) == []
    assert "No hosts are running" in hosts("down", state=environment).stdout
