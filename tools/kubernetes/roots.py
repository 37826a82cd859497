# SPDX-License-Identifier: GPL-3.0-or-later
"""Root file systems of images. They are made of Debian packages on this machine, so no registry of images is needed."""

from __future__ import annotations

import shlex
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from openipu.process.background import ProcessError

from ..hosts.image import SUITE, apt_sources, write_root
from ..hosts.site import system_environment
from . import cache
from .site import CACHE

_EXTRACT = Path(__file__).with_name("extract.sh")
_CLEAN_HOOK = 'rm -rf "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/var/cache/* "$1"/var/log/* "$1"/var/lib/apt/lists/*'
_STATUS = "./var/lib/dpkg/status.d/"  # folder with a file of each unpacked package


@dataclass(frozen=True)
class Root:
    """A root file system.

    ``installed``: run the scripts of the packages and add all essential packages. Otherwise, packages are only
    unpacked: the image has no shell and no package manager that works.
    """

    name: str
    packages: tuple[str, ...]
    installed: bool = False


BASE = Root("base", ("ca-certificates", "libstdc++6", "python3"))  # of the images of the operator
PAUSE = Root("pause", ("busybox-static",))
WORKER = Root(
    "worker",
    ("curl", "iproute2", "jq", "openmpi-bin", "openssh-client", "openssh-server", "procps", "python3"),
    installed=True,
)


def ensure_root(root: Root, report: Callable[[str], None]) -> Path:
    """Return the archive of a root file system, which is created if it is missing. Raises ProcessError."""
    sources, options = apt_sources()
    inputs: list[str | Path] = [repr(root), SUITE, _CLEAN_HOOK, _EXTRACT, *options, *sources]

    def create(path: Path) -> None:
        report(f"Creating the root file system '{root.name}': {' '.join(root.packages)} …")
        if root.installed:
            write_root(path, "minbase", root.packages, sources, options, _CLEAN_HOOK)
        else:
            _unpack(path, root, sources, options)

    return cache.ensure(f"root-{root.name}", inputs, create, ".tar")


def _unpack(path: Path, root: Root, sources: list[Path], options: list[str]) -> None:
    command = ["unshare", "--mount", "mmdebstrap", "--mode=root", "--variant=extract"]
    # No program runs in it, and the hook removes the files of apt.
    command += [f"--skip={part}" for part in ("chroot/mount", "output/dev", "cleanup/apt", "cleanup/mmdebstrap")]
    command += [f"--include={','.join(root.packages)}", *(f"--aptopt={option}" for option in options)]
    command += [f'--extract-hook={shlex.quote(str(_EXTRACT))} "$1"', SUITE, str(path), *map(str, sources)]
    environment = {**system_environment(), "TMPDIR": str(path.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        cause = next((line for line in done.stderr.splitlines() if line.startswith("E: ")), "E: mmdebstrap failed")
        raise ProcessError(f"Cannot create the root file system '{root.name}': {cause.removeprefix('E: ')}.")


def unpacked_packages(archive: Path) -> list[str]:
    """Return the packages of a root file system that is not installed, as package URLs. Raises ProcessError."""
    found = []
    with tarfile.open(archive) as files:
        for member in files:
            if member.isfile() and member.name.startswith(_STATUS):
                content = files.extractfile(member)
                assert content is not None  # it is a file
                lines = content.read().decode().splitlines()
                fields = dict(line.split(": ", 1) for line in lines if ": " in line and not line.startswith(" "))
                found.append(f"pkg:deb/debian/{fields['Package']}@{fields['Version']}")
    if not found:
        raise ProcessError(
            f"Cannot list the packages of {archive}: it has no records. Remove {CACHE}/root-* and repeat."
        )
    return sorted(found)
