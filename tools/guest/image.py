# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks of guests: Debian with its kernel, created once and kept until their inputs change."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from openipu.process.background import ProcessError

from ..hosts.image import SUITE, apt_sources
from ..hosts.site import system_environment
from .site import CACHE

INSIDE = Path(__file__).parent / "inside"
EARLY = INSIDE / "early"  # files of all guests, before the packages are installed
DISK = "2G"  # sparse
RECIPE = 2  # increase it when the build steps below change
# Packages of all guests.
BASE = (
    *("systemd-sysv", "udev", "dbus", "kmod", "linux-image-amd64", "initramfs-tools", "busybox", "openssh-server"),
    *("iproute2", "python3", "sudo", "zstd"),
)
# Repository in the guest with the packages that are not installed. $1 is the root file system.
_DOWNLOAD = """
set -eu
APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -qq -y --no-install-recommends --download-only install {packages}
mkdir "$1/srv/packages"
mv "$1"/var/cache/apt/archives/*.deb "$1/srv/packages/"
chroot "$1" sh -c 'cd /srv/packages && apt-ftparchive packages . >Packages'
"""


@dataclass(frozen=True)
class Image:
    """Contents of a disk.

    ``files`` is a folder that is copied into the root file system. Its script ``finish`` is the last step of the build.
    ``downloads`` are packages in a repository in the guest, ``/srv/packages``, since the guest reaches no mirror.
    """

    name: str
    packages: tuple[str, ...]
    files: Path
    downloads: tuple[str, ...] = ()


def ensure_image(image: Image) -> Path:
    """Return the folder with ``root.img``, ``vmlinuz`` and ``initrd``; create it if missing. Raises ProcessError."""
    folder = CACHE / f"{image.name}-{_fingerprint(image)}"
    if not folder.exists():
        if os.geteuid() != 0:
            raise ProcessError("Cannot create the disk of the guest: it needs root. Run the same command once as root.")
        for outdated in CACHE.glob(f"{image.name}-{'?' * 16}"):  # images of other inputs
            shutil.rmtree(outdated)
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as scratch:
            _build(image, Path(scratch), CACHE / "making.log")
            (Path(scratch) / "done").rename(folder)
    return folder


def _fingerprint(image: Image) -> str:
    digest = hashlib.sha256(repr((RECIPE, SUITE, image.packages, image.downloads)).encode())
    for path in sorted(path for folder in (EARLY, image.files) for path in folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(INSIDE)} {path.stat().st_mode & 0o111}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(image: Image, scratch: Path, log: Path) -> None:
    root, done = scratch / "root", scratch / "done"
    done.mkdir()
    sources, options = apt_sources()
    bootstrap = ["unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=minbase"]
    bootstrap += [f"--include={','.join(image.packages)}", *(f"--aptopt={line}" for line in options)]
    bootstrap += ["--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"]
    # A minimal initial file system: an emulated processor unpacks it at every boot.
    bootstrap += [f"--essential-hook=sync-in {EARLY} /", f"--customize-hook=sync-in {image.files} /"]
    if image.downloads:
        bootstrap += [f"--customize-hook={_DOWNLOAD.format(packages=' '.join(image.downloads))}"]
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
