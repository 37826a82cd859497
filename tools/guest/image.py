# SPDX-License-Identifier: GPL-3.0-or-later
"""The guest's disk: Debian with its own kernel, made once and kept for as long as what it is made of stays the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

from openipu.twin.processes import ProcessError

from ..hosts.image import SUITE, mirror
from ..hosts.site import environment
from .site import CACHE, CHECKOUT

INSIDE = Path(__file__).parent / "inside"
DISK = "2G"  # sparse
# What a server has before a role comes; and what the other end of its cables needs, which is in the same guest.
PACKAGES = (
    *("systemd-sysv", "udev", "dbus", "kmod", "linux-image-amd64", "initramfs-tools", "busybox", "openssh-server"),
    *("ifupdown", "iproute2", "iputils-ping", "python3", "python3-apt", "sudo", "zstd"),
    *("nfs-kernel-server", "chrony", "network-manager"),
    *("fdisk", "lvm2"),  # what a disk may hold that nobody is to lose
)
# What the role installs is there already, since the guest reaches no mirror; by the role's own list, so a name that
# Debian does not have is found here.
ROLE = CHECKOUT / "roles/poplar_server/vars/Debian.yml"
RECIPE = 1  # count up when the steps below change


def role_packages() -> list[str]:
    """What the role installs on Debian."""
    return [str(name) for name in yaml.safe_load(ROLE.read_text())["poplar_server_packages"]]


def made() -> Path:
    """The folder with ``root.img``, ``vmlinuz`` and ``initrd``, made now if need be. Raises ProcessError."""
    folder = CACHE / _fingerprint()
    if not folder.exists():
        if os.geteuid() != 0:
            raise ProcessError("The guest's disk is made by root only: run this once as root.")
        for left in CACHE.glob("?" * 16):  # of an older recipe
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as scratch:
            _make(Path(scratch), CACHE / "making.log")
            (Path(scratch) / "done").rename(folder)
    return folder


def _fingerprint() -> str:
    digest = hashlib.sha256(repr((RECIPE, SUITE, PACKAGES, role_packages())).encode())
    for path in sorted(INSIDE.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(INSIDE)} {path.stat().st_mode & 0o111}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _make(scratch: Path, log: Path) -> None:
    root, done = scratch / "root", scratch / "done"
    done.mkdir()
    sources, options = mirror()
    bootstrap = ["unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=minbase"]
    bootstrap += [f"--include={','.join([*PACKAGES, *role_packages()])}", *(f"--aptopt={line}" for line in options)]
    bootstrap += ["--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"]
    # The smallest initial file system that finds the disk: it is unpacked at every boot, by an emulated processor.
    bootstrap += [f"--essential-hook=sync-in {INSIDE / 'early'} /", f"--customize-hook=sync-in {INSIDE / 'late'} /"]
    bootstrap += ['--customize-hook=chroot "$1" sh /finish && rm "$1/finish"', SUITE, str(root), *map(str, sources)]
    with log.open("wb") as output:
        _run(bootstrap, output.fileno(), log)
        for name in ("vmlinuz", "initrd"):
            shutil.copyfile((root / "boot").glob(f"{name}*").__next__(), done / name)
        _run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(done / "root.img"), DISK], output.fileno(), log)


def _run(command: list[str], output: int, log: Path) -> None:
    done = subprocess.run(  # noqa: S603  ours
        command, env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
    )
    if done.returncode:
        raise ProcessError(f"{command[0]} could not make the guest's disk: look into {log}.")
