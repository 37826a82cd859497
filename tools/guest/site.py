# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the guest lives: its folders, its hardware, and who may log in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / ".cache" / "guest"  # what lasts: the image
STATE = CACHE / "run"

USER = "ansible"  # who logs in: may do everything by sudo, and has no password
MANAGEMENT = "enp0s3"
DATA = ("enp0s4", "enp0s5")  # to be bonded; what is at their other end is in inside/
SWITCH = ("enp0s6", "enp0s7")
NVME_DISKS = 14  # seven for the array, seven that hold something else
NVME_SIZE = 512 * 2**20  # bytes; the files are sparse
SRIOV_BUS = "rp0"  # the NVMe controller with virtual functions is alone behind this port
SRIOV_VFS = 4


@dataclass(frozen=True)
class Site:
    """The folder of one running guest."""

    state: Path

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`: where it is, and by which keys it and its user know each other."""
        return self.state / "ssh_config"

    @property
    def console(self) -> Path:
        """What the kernel and systemd say."""
        return self.state / "console.log"

    @property
    def key(self) -> Path:
        """The user's private key."""
        return self.state / "id_ed25519"

    @property
    def host_key(self) -> Path:
        """The guest's private key."""
        return self.state / "host_ed25519"

    @property
    def root_disk(self) -> Path:
        """What differs from the image."""
        return self.state / "root.qcow2"

    @property
    def credentials(self) -> Path:
        """What systemd-tmpfiles writes in the guest when it boots."""
        return self.state / "tmpfiles.extra"

    def nvme(self, number: int) -> Path:
        """A disk, counted from 0."""
        return self.state / f"nvme{number}.img"
