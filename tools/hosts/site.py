# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders of the hosts, required programs, and helpers to run and install them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from openipu.process.background import ProcessError

CHECKOUT = Path(__file__).resolve().parents[2]
_FOLDER = CHECKOUT / ".cache" / "hosts"
STATE = _FOLDER / "default"  # default of --state-dir
# Persistent: root file systems and images. Several checkouts may share this folder.
CACHE = Path(os.environ.get("HOSTS_CACHE") or _FOLDER).absolute()

# Program to Debian package.
PROGRAMS = {
    "aardvark": "aardvark-dns",  # name resolution of hosts
    "catatonit": "catatonit",  # reaps orphaned processes
    "flock": "util-linux",
    "ip": "iproute2",
    "iptables": "iptables",  # routes of podman networks
    "mmdebstrap": "mmdebstrap",  # creates the root file system
    "netavark": "netavark",  # podman networks
    "nsenter": "util-linux",
    "podman": "podman",
    "runc": "runc",  # crun of Debian rejects options of hosts with an init
    "slirp4netns": "slirp4netns",  # route from hosts to package mirrors
    "ssh": "openssh-client",
}
_FIXED_PATHS = {"aardvark": "/usr/lib/podman/aardvark-dns", "netavark": "/usr/lib/podman/netavark"}


def missing() -> list[str]:
    """Return the required packages that are not installed."""
    found = {name: _FIXED_PATHS.get(name) or shutil.which(name, path=system_environment()["PATH"]) for name in PROGRAMS}
    return sorted({PROGRAMS[name] for name, path in found.items() if not path or not Path(path).exists()})


def check_requirements() -> None:
    """Raise ProcessError when the user is not root or a package is missing."""
    if os.geteuid() != 0:
        raise ProcessError("Cannot run hosts: namespaces and mounts need root. Run the same command as root.")
    if packages := missing():
        names = " ".join(packages)
        raise ProcessError(
            f"Cannot run hosts: not installed: {names}. Run: apt install --no-install-recommends {names}"
        )


def system_environment() -> dict[str, str]:
    """Return the environment for system programs, without the Python and podman settings of the caller."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "LC_ALL", "TERM", "TZ")}
    return {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def run(command: Sequence[str], purpose: str, env: dict[str, str] | None = None) -> str:
    """Run a program and return its output. Raises ProcessError with its purpose and its last line of errors."""
    done = subprocess.run(  # noqa: S603  command of this tool
        command, env=env or system_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ProcessError(f"Cannot {purpose}: {command[0]} failed: {last}")
    return done.stdout


def install_packages(packages: list[str], report: Callable[[str], None]) -> None:
    """Install Debian packages. Do nothing without packages, root or apt-get. Raises ProcessError."""
    if not packages or os.geteuid() != 0 or not Path("/usr/bin/apt-get").exists():
        return  # check_requirements reports missing packages
    report(f"Installing {' '.join(packages)} …")
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    for command in ([*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(  # noqa: S603  command of this tool
            command,
            env={**system_environment(), "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise ProcessError(f"Cannot install packages: '{' '.join(command[:1] + command[3:])}' failed. See above.")
