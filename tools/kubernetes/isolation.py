# SPDX-License-Identifier: GPL-3.0-or-later
"""Linux namespaces and control groups of a node.

All its processes, pods, mounts and networks end with the command that runs in them. Several nodes can run at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from openipu.process.background import ProcessError

from ..hosts.site import run
from .site import NODE, NODE_ADDRESS, missing

GROUP_VARIABLE = "KUBERNETES_NODE_GROUP"  # environment: control group of the pods, such as /openipu-node-123
_SCRIPT = Path(__file__).with_name("isolate.sh")
_GROUPS = Path("/sys/fs/cgroup")
_PREFIX = "openipu-node-"  # the rest of the name is the id of the process that removes the group
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
    """Run a command in new namespaces and return its exit status. SIGTERM ends it. Raises ProcessError."""
    check_requirements()
    # Without this process, nothing would remove the control group.
    namespaces = ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "--mount", "--pid", "--ipc", "--uts"]
    namespaces += ["--fork", "--kill-child", "--mount-proc", "--propagation=private"]
    isolated = [*namespaces, str(_SCRIPT), NODE_ADDRESS, NODE, *command]
    _remove_unused_groups()
    group = f"{_PREFIX}{os.getpid()}"
    former = signal.signal(signal.SIGTERM, _end)
    try:
        for tree in _trees():
            (tree / group).mkdir()
        environment = {**os.environ, GROUP_VARIABLE: f"/{group}"}
        with subprocess.Popen(isolated, env=environment) as process:  # noqa: S603  command of the caller
            try:
                return process.wait()
            finally:
                process.kill()  # all processes in the namespaces end with it
    finally:
        signal.signal(signal.SIGTERM, former)
        _remove_group(group)


def _end(number: int, frame: FrameType | None) -> None:
    """End this process after it has removed what it has made."""
    raise SystemExit(128 + number)


def _trees() -> Iterator[Path]:
    """Yield the hierarchies of control groups: one of version 2, several of version 1, or both."""
    if (_GROUPS / "cgroup.controllers").exists():
        yield _GROUPS
    else:
        yield from sorted({each.resolve() for each in _GROUPS.iterdir() if each.is_dir()})


def _remove_unused_groups() -> None:
    """Remove the control groups whose process was killed."""
    names = {each.name for tree in _trees() for each in tree.glob(f"{_PREFIX}*")}
    for name in names:
        if not Path("/proc", name.removeprefix(_PREFIX)).exists():
            _remove_group(name)


def _remove_group(name: str) -> None:
    """Remove a control group, which has no processes any more, with all its children."""
    for folder in (tree / name for tree in _trees()):
        if folder.is_dir():
            run(["find", str(folder), "-depth", "-type", "d", "-exec", "rmdir", "{}", "+"], f"remove {folder}")
