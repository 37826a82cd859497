# SPDX-License-Identifier: GPL-3.0-or-later
"""Podman with a store of its own, isolated from the podman of the machine."""

from __future__ import annotations

import json
import resource
import shlex
from pathlib import Path

from ..hosts.site import run, system_environment

# Podman has one folder for the locks of all stores. Private mounts prevent locks of this store in it. runc requires a
# single tree of control groups, which the machine may not have.
_ISOLATE = """
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec "$@"
"""
_LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
_MOST = 32_000  # podman itself lowers the limits of a build, but not below this number


class Podman:
    """Podman whose images and containers are in a folder, which must exist.

    ``images``: read-only store with further images.
    """

    def __init__(self, folder: Path, images: Path | None = None) -> None:
        self._folder = folder
        options = [f"--root={folder / 'store'}", "--runroot=/run/podman", "--tmpdir=/run/libpod"]
        options += ["--storage-driver=overlay", "--events-backend=none", "--cgroup-manager=cgroupfs", "--runtime=runc"]
        options += [f"--storage-opt=additionalimagestore={images}"] if images else []
        self._command = ["/usr/bin/podman", *options]

    @property
    def store(self) -> Path:
        """Folder of the images."""
        return self._folder / "store"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of all commands. The wrapper ``podman`` in the path has the options of the store."""
        programs = self._folder / "bin"
        programs.mkdir(exist_ok=True)
        wrapper = programs / "podman"
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(self._command)} "$@"\n')
        wrapper.chmod(0o755)
        settings = self._folder / "containers.conf"
        limits = [f"{name}={_limit(kind)}" for name, kind in _LIMITS.items()]
        settings.write_text(
            f'[containers]\ndefault_ulimits = {json.dumps(limits)}\npids_limit = 0\ncgroups = "no-conmon"\n'
        )
        base = system_environment()
        return {
            **base,
            "PATH": f"{programs}:{base['PATH']}",
            "CONTAINERS_CONF": str(settings),
            "BUILDAH_ISOLATION": "chroot",
            "TMPDIR": str(self._folder),
        }

    def command_line(self, *command: str, network: bool = True) -> list[str]:
        """Return the command line of a program that starts podman, optionally without a network."""
        isolate = ["unshare", "--mount", "--propagation=private", *([] if network else ["--net"])]
        return [*isolate, "sh", "-c", _ISOLATE, "sh", *command]

    def __call__(self, *arguments: str) -> str:
        """Run podman and return its output. Raises ProcessError."""
        return run(self.command_line("podman", *arguments), f"run podman {arguments[0]}", self.environment)


def _limit(kind: int) -> str:
    """Return soft and hard limit of a container, which cannot exceed the hard limit of this process."""
    hard = resource.getrlimit(kind)[1]
    number = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    return f"{number}:{number}"
