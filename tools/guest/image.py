# SPDX-License-Identifier: GPL-3.0-or-later
"""Disk of the guest: Debian with its kernel, created once and kept until its inputs change."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

from openipu.process.background import ProcessError

from ..hosts.image import SUITE, apt_sources
from ..hosts.site import system_environment
from .site import CACHE, CHECKOUT

INSIDE = Path(__file__).parent / "inside"
DISK = "2G"  # sparse
# Packages of a server before a role is applied, and of the simulated switch in the same guest.
PACKAGES = (
    *("systemd-sysv", "udev", "dbus", "kmod", "linux-image-amd64", "initramfs-tools", "busybox", "openssh-server"),
    *("ifupdown", "iproute2", "iputils-ping", "python3", "python3-apt", "sudo", "zstd"),
    *("nfs-kernel-server", "chrony", "network-manager"),
    *("fdisk", "lvm2"),  # create disks with data that the role must keep
)
# The image also has the packages of the role, because the guest reaches no mirror. They are read from the role, so the
# build fails on a name that Debian does not have.
ROLE = CHECKOUT / "roles/poplar_server/vars/Debian.yml"
RECIPE = 1  # increase it when the build steps below change


def role_packages() -> list[str]:
    """Return the packages that the role installs on Debian."""
    return [str(name) for name in yaml.safe_load(ROLE.read_text())["poplar_server_packages"]]


def ensure_image() -> Path:
    """Return the folder with ``root.img``, ``vmlinuz`` and ``initrd``; create it if missing. Raises ProcessError."""
    folder = CACHE / _fingerprint()
    if not folder.exists():
        if os.geteuid() != 0:
            raise ProcessError("Cannot create the disk of the guest: it needs root. Run the same command once as root.")
        for outdated in CACHE.glob("?" * 16):  # images of other inputs
            shutil.rmtree(outdated)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as scratch:
            _build(Path(scratch), CACHE / "making.log")
            (Path(scratch) / "done").rename(folder)
    return folder


def _fingerprint() -> str:
    digest = hashlib.sha256(repr((RECIPE, SUITE, PACKAGES, role_packages())).encode())
    for path in sorted(INSIDE.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(INSIDE)} {path.stat().st_mode & 0o111}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(scratch: Path, log: Path) -> None:
    root, done = scratch / "root", scratch / "done"
    done.mkdir()
    sources, options = apt_sources()
    bootstrap = ["unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=minbase"]
    bootstrap += [f"--include={','.join([*PACKAGES, *role_packages()])}", *(f"--aptopt={line}" for line in options)]
    bootstrap += ["--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"]
    # A minimal initial file system: an emulated processor unpacks it at every boot.
    bootstrap += [f"--essential-hook=sync-in {INSIDE / 'early'} /", f"--customize-hook=sync-in {INSIDE / 'late'} /"]
    bootstrap += ['--customize-hook=chroot "$1" sh /finish && rm "$1/finish"', SUITE, str(root), *map(str, sources)]
    with log.open("wb") as output:
        _run(bootstrap, output.fileno(), log)
        for name in ("vmlinuz", "initrd"):
            shutil.copyfile((root / "boot").glob(f"{name}*").__next__(), done / name)
        _run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(done / "root.img"), DISK], output.fileno(), log)


def _run(command: list[str], output: int, log: Path) -> None:
    done = subprocess.run(  # noqa: S603  command of this tool
        command, env=system_environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
    )
    if done.returncode:
        raise ProcessError(f"Cannot create the disk of the guest: {command[0]} failed. See {log}.")
