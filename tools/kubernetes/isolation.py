# SPDX-License-Identifier: GPL-3.0-or-later
"""Linux namespaces of a node. All its processes, pods, mounts and networks end with the command that runs in them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from openipu.process.background import ProcessError

from ..hosts.site import run
from ..locks import folder_lock
from .site import NODE_ADDRESS, missing

_SCRIPT = Path(__file__).with_name("isolate.sh")
# Nodes share the control groups of the machine, and kubelet removes those of pods that it does not know.
_LOCK = Path("/run/lock/openipu-kubernetes-node")
_GROUPS = Path("/sys/fs/cgroup")
# Program or file -> Debian package.
PACKAGES = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "ip": "iproute2",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "dnsmasq": "dnsmasq-base",
    "ethtool": "ethtool",
    "mmdebstrap": "mmdebstrap",
    "podman": "podman",
    "docker-registry": "docker-registry",
}


def check_requirements() -> None:
    """Raise ProcessError when the user is not root or a package is missing."""
    if os.geteuid() != 0:
        raise ProcessError("Cannot run a node: namespaces and mounts need root. Run the same command as root.")
    if packages := missing(PACKAGES):
        names = " ".join(packages)
        raise ProcessError(
            f"Cannot run a node: not installed: {names}. Run: apt install --no-install-recommends {names}"
        )


def run_isolated(command: Sequence[str]) -> int:
    """Run a command in new namespaces and return its exit status. Raises ProcessError."""
    check_requirements()
    namespaces = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    isolated = [*namespaces, "--propagation=private", str(_SCRIPT), NODE_ADDRESS, *command]
    with folder_lock(_LOCK):
        _remove_groups()  # of a killed run
        try:
            return subprocess.run(isolated, check=False).returncode  # noqa: S603  command of the caller
        finally:
            _remove_groups()


def _remove_groups() -> None:
    """Remove the control groups of pods, which have no processes any more."""
    trees = [_GROUPS, *(each for each in _GROUPS.iterdir() if each.is_dir())]
    for folder in (tree / name for tree in trees for name in ("kubepods", "k8s.io")):
        if folder.is_dir():
            run(["find", str(folder), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"], f"remove {folder}")
