# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders, hardware and SSH user of the guest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "guest"  # persistent: the image
STATE = CACHE / "run"

USER = "ansible"  # SSH user with full sudo rights and without a password
MANAGEMENT = "enp0s3"
DATA = ("enp0s4", "enp0s5")  # ports for a bond; inside/ configures the switch at their other end
SWITCH = ("enp0s6", "enp0s7")
NVME_DISKS = 14  # seven for the array, seven with other data
NVME_SIZE = 512 * 2**20  # bytes; the files are sparse
SRIOV_BUS = "rp0"  # PCIe root port of the NVMe controller with virtual functions
SRIOV_VFS = 4


@dataclass(frozen=True)
class Site:
    """Location of one running guest."""

    state: Path

    @property
    def ssh_config(self) -> Path:
        """Configuration for `ssh -F`: address, user key and known host key."""
        return self.state / "ssh_config"

    @property
    def console(self) -> Path:
        """Log of the console, with messages of the kernel and systemd."""
        return self.state / "console.log"

    @property
    def key(self) -> Path:
        """Private key of the user."""
        return self.state / "id_ed25519"

    @property
    def host_key(self) -> Path:
        """Private host key of the guest."""
        return self.state / "host_ed25519"

    @property
    def root_disk(self) -> Path:
        """Overlay disk with the differences from the image."""
        return self.state / "root.qcow2"

    @property
    def credentials(self) -> Path:
        """Files that systemd-tmpfiles writes in the guest at boot."""
        return self.state / "tmpfiles.extra"

    def nvme(self, number: int) -> Path:
        """Return the path of an NVMe disk; numbers start at 0."""
        return self.state / f"nvme{number}.img"
