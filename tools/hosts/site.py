# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the hosts live, and which programs they need."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from openipu.twin.processes import ProcessError

CHECKOUT = Path(__file__).resolve().parents[2]
_FOLDER = CHECKOUT / ".cache" / "hosts"
STATE = _FOLDER / "rig"  # the folder of running hosts, unless another is named
# What lasts: root file systems and images made of them. Several checkouts may have one in common.
CACHE = Path(os.environ.get("HOSTS_CACHE") or _FOLDER).absolute()

# Programs, and the Debian packages that they are in.
PROGRAMS = {
    "aardvark": "aardvark-dns",  # names of hosts
    "catatonit": "catatonit",  # looks after what has lost its parent
    "flock": "util-linux",
    "ip": "iproute2",
    "iptables": "iptables",  # how podman's networks are routed
    "mmdebstrap": "mmdebstrap",  # makes the root file system
    "netavark": "netavark",  # podman's networks
    "nsenter": "util-linux",
    "podman": "podman",
    "runc": "runc",  # Debian's crun refuses what a host with an init needs
    "slirp4netns": "slirp4netns",  # the hosts' way to package mirrors
    "ssh": "openssh-client",
}
_ELSEWHERE = {"aardvark": "/usr/lib/podman/aardvark-dns", "netavark": "/usr/lib/podman/netavark"}


def missing() -> list[str]:
    """The packages that are needed and not installed."""
    found = {name: _ELSEWHERE.get(name) or shutil.which(name, path=environment()["PATH"]) for name in PROGRAMS}
    return sorted({PROGRAMS[name] for name, path in found.items() if not path or not Path(path).exists()})


def check_possible() -> None:
    """Raise ProcessError when hosts cannot run here."""
    if os.geteuid() != 0:
        raise ProcessError("Hosts need root, for namespaces and mounts: run the same command as root.")
    if packages := missing():
        names = " ".join(packages)
        raise ProcessError(f"Not installed: {names}. Install with: apt install --no-install-recommends {names}")


def environment() -> dict[str, str]:
    """The environment of programs of the system: nothing of the caller's Python or podman settings."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "LANG", "LC_ALL", "TERM", "TZ")}
    return {**kept, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def run(command: Sequence[str], what: str, env: dict[str, str] | None = None) -> str:
    """What a program printed. Raises ProcessError, which says what could not be done, with its last words."""
    done = subprocess.run(  # noqa: S603  ours
        command, env=env or environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ProcessError(f"Cannot {what}: {command[0]} says: {last}")
    return done.stdout


def install_packages(packages: list[str], say: Callable[[str], None]) -> None:
    """Install packages of Debian, when there are any and that is allowed. Raises ProcessError."""
    if not packages or os.geteuid() != 0 or not Path("/usr/bin/apt-get").exists():
        return  # who needs them says that they are missing
    say(f"Installing {' '.join(packages)} …")
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    for command in ([*apt, "update"], [*apt, "install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(  # noqa: S603  ours
            command,
            env={**environment(), "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise ProcessError(f"{' '.join(command[:1] + command[3:])} failed: its own message stands above.")
