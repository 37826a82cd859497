# SPDX-License-Identifier: GPL-3.0-or-later
"""The place where hosts run: what is in it works like a machine of its own, and nothing of it stays behind."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from role_hosts import hosts

from tools.hosts.rig import Rig

NETWORK = f"10.30.{250 + int(os.environ.get('PYTEST_XDIST_WORKER', 'gw0')[2:])}."  # no other worker's
ADDRESS = f"{NETWORK}11"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One with a host in it."""
    state = tmp_path_factory.mktemp("hosts") / "place"
    done = hosts("up", state=state, seconds=600)
    assert done.returncode == 0, done.stdout
    start = (
        f"podman network create --subnet={NETWORK}0/24 n && "
        f"podman run --detach --name=h --hostname=h --systemd=always --cap-add=all --network=n --ip={ADDRESS} "
        "--security-opt=seccomp=unconfined --security-opt=apparmor=unconfined --security-opt=unmask=ALL "
        '"$HOSTS_IMAGE" /sbin/init'
    )
    try:
        done = hosts("run", "sh", "-c", start, state=state)
        assert done.returncode == 0, done.stdout
        assert until_running(state) == "running"
        yield state
    finally:
        hosts("down", state=state)


def until_running(state: Path) -> str:
    """What the host's init says, once it has come up."""
    deadline = time.monotonic() + 60
    while True:
        done = hosts("run", "podman", "exec", "h", "systemctl", "is-system-running", "--wait", state=state)
        said = done.stdout.strip()
        if said in ("running", "degraded") or time.monotonic() > deadline:
            return said


def marks(state: Path) -> list[str]:
    """What the machine itself shows of a place: processes, mounts, firewall rules, networks."""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    lines += Path("/proc/self/mounts").read_text().splitlines()
    for command in ("iptables-save", "ip -br address"):
        lines += subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout.splitlines()
    return [line for line in lines if str(state) in line or NETWORK in line]


def groups(state: Path) -> list[Path]:
    """Its control group, wherever the machine has a tree of them."""
    trees = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if " cgroup2 " in line]
    assert trees, "the machine has no tree of control groups to look into"
    return [group for tree in trees if (group := Path(tree) / Rig(state).group).exists()]


def test_a_host_has_an_init_names_and_a_way_in(place: Path) -> None:
    for command in (
        ["podman", "exec", "h", "systemctl", "is-active", "ssh.service"],
        ["podman", "exec", "h", "sysctl", "-w", "net.ipv4.ip_forward=1"],
        ["podman", "exec", "h", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
        ["podman", "exec", "h", "getent", "hosts", "h"],
        ["ansible", "all", "-i", f"{ADDRESS},", "--become", "-m", "ansible.builtin.ping"],
    ):
        done = hosts("run", *command, state=place)
        assert done.returncode == 0, f"{command}: {done.stdout}"


def test_a_host_keeps_what_it_has_when_it_restarts(place: Path) -> None:
    assert hosts("run", "podman", "exec", "h", "touch", "/root/kept", state=place).returncode == 0
    assert hosts("run", "podman", "restart", "h", state=place).returncode == 0
    assert until_running(place) == "running"
    done = hosts("run", "podman", "exec", "h", "sh", "-c", "ls /root/kept && hostname -I", state=place)
    assert done.stdout.split() == ["/root/kept", ADDRESS]


def test_a_host_has_none_of_the_machines_disks(place: Path) -> None:
    disks = [disk.device for disk in psutil.disk_partitions() if disk.device.startswith("/dev/")]
    assert disks
    for disk in disks:
        assert hosts("run", "podman", "exec", "h", "test", "-e", disk, state=place).returncode == 1


def test_the_machine_has_no_network_of_theirs(place: Path) -> None:
    links = subprocess.run(["ip", "-br", "address"], capture_output=True, text=True, check=True).stdout
    assert NETWORK not in links
    assert NETWORK in hosts("run", "ip", "-br", "address", state=place).stdout


def test_nothing_stays_behind(place: Path) -> None:
    assert marks(place)
    assert groups(place)
    done = hosts("down", state=place)
    assert done.returncode == 0, done.stdout
    assert not place.exists()
    assert marks(place) == []
    assert groups(place) == []
    assert "No hosts run here" in hosts("down", state=place).stdout
