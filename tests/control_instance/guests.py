# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs of an order in QEMU, with the user data and the config drive that Nova would give them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.control_instance.lan import Host, Lan
from tests.control_instance.ordering import Vm
from tests.waiting import until, within
from tools.guest import cloud, qemu
from tools.guest.image import ensure_image

BOOT_SECONDS = 1800  # ten times the duration on an idle machine
KEEP_ALIVE = ("ConnectTimeout=30", "ServerAliveInterval=15", "ServerAliveCountMax=4")  # the VM reboots
NEEDS_QEMU = [
    pytest.mark.timeout(4000),
    pytest.mark.skipif(bool(cloud.missing()), reason=f"not installed: {' '.join(cloud.missing())}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
"""Marks of tests with VMs."""
USER_DATA = "/var/lib/cloud/instance/user-data.txt"  # as cloud-init read it


def create_key(folder: Path) -> str:
    """Create the SSH key of the operator and of the tenant. Returns its public part."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
    return (folder / "key.pub").read_text().strip()


@dataclass(frozen=True)
class Guest:
    """VM whose ports are in networks of the LAN. ``client`` is a host that may log in to ``address``."""

    lan: Lan
    vm: Vm
    client: Host
    address: str

    @property
    def folder(self) -> Path:
        return self.lan.folder

    def ssh(self, command: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a command in the VM over SSH, with the key of its user data."""
        options = ("BatchMode=yes", "StrictHostKeyChecking=accept-new", *KEEP_ALIVE, "LogLevel=ERROR")
        known = f"UserKnownHostsFile={self.folder / 'known_hosts'}"
        line = ["ssh", "-i", str(self.folder / "key"), *(f"-o{option}" for option in (*options, known))]
        line = self.client.command(*line, f"debian@{self.address}", command)
        # ssh makes its input non-blocking, also for the programs that share it, and ansible-playbook rejects that.
        return subprocess.run(
            line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
        )

    def output(self, command: str, seconds: float = 300) -> str:
        """Return the output of a command in the VM that must not fail."""
        done = self.ssh(command, seconds)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def boot(self, bridges: Sequence[str], dns_servers: Sequence[str] = ()) -> None:
        """Start the VM with its ports in these networks, and wait until cloud-init has finished."""
        folder, console = self.folder, self.folder / "console.log"
        disk, drive = folder / "disk.qcow2", folder / "config.iso"
        image = ensure_image(cloud.cloud_image())
        cloud.create_disk(disk, image)
        macs = [port["mac"] for port in self.vm.ports]
        assert self.vm.options["config_drive"] is True
        (folder / "drive").mkdir()
        cloud.create_config_drive(drive, folder / "drive", self._metadata(), macs, self.vm.user_data, dns_servers)
        taps = dict(zip((self.lan.tap(bridge) for bridge in bridges), macs, strict=True))
        *others, last = qemu.accelerators()
        for accelerator in (*others, last):
            line = cloud.command(image, disk, drive, console, taps, accelerator)
            process = self.lan.start(self.lan.switch, "qemu", *line)
            if accelerator == last or _starts(process, console):
                break
            process.kill()
            process.wait()

        def finished() -> bool:
            assert process.poll() is None, (folder / "qemu.log").read_text()
            done = self.ssh("cloud-init status --wait", BOOT_SECONDS)
            return "status: " in done.stdout

        until(finished, BOOT_SECONDS, lambda: console.read_text(errors="replace")[-3000:])

    def reboot(self) -> None:
        """Reboot the VM and wait until all units have started."""
        before = self.output("cat /proc/sys/kernel/random/boot_id")
        self.ssh("sudo systemctl reboot")

        def rebooted() -> bool:
            done = self.ssh("cat /proc/sys/kernel/random/boot_id && systemctl is-system-running --wait")
            return bool(done.stdout) and not done.stdout.startswith(before) and "running" in done.stdout

        until(rebooted, BOOT_SECONDS, "running after the reboot")

    def _metadata(self) -> dict[str, Any]:
        name = self.vm.options["name"]
        return {"uuid": "83679162-1378-4288-a2d4-70e13ec132aa", "name": name, "hostname": name}


def _starts(process: subprocess.Popen[bytes], console: Path) -> bool:
    """Return whether the kernel writes to the console soon."""

    def writes() -> bool:
        return console.exists() and console.stat().st_size > 0

    within(lambda: process.poll() is not None or writes(), qemu.KVM_SECONDS)
    return process.poll() is None and writes()
