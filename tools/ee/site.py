# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders, required packages and programs of the execution environment."""

from __future__ import annotations

import os
import shutil

from openipu.process.background import ProcessError

from ..hosts.site import CHECKOUT, system_environment
from ..kubernetes.site import CACHE

__all__ = ["BIN", "CACHE", "CHECKOUT", "DEFINITION", "check_requirements", "client_environment", "missing"]

DEFINITION = CHECKOUT / "extensions" / "ee" / "execution-environment.yml"
BIN = CHECKOUT / ".venv" / "bin"

# Program to Debian package.
PROGRAMS = {"mmdebstrap": "mmdebstrap", "podman": "podman", "runc": "runc", "unshare": "util-linux"}


def missing() -> list[str]:
    """Return the required packages that are not installed."""
    path = system_environment()["PATH"]
    return sorted(package for program, package in PROGRAMS.items() if not shutil.which(program, path=path))


def check_requirements() -> None:
    """Raise ProcessError when the user is not root or a package is missing."""
    if os.geteuid() != 0:
        raise ProcessError(
            "Cannot use the execution environment: mounts of its file systems need root. Run the same command as root."
        )
    if packages := missing():
        names = " ".join(packages)
        raise ProcessError(
            f"Cannot use the execution environment: not installed: {names}. "
            f"Run: apt install --no-install-recommends {names}"
        )


def client_environment() -> dict[str, str]:
    """Return the environment of uv and pip: the settings of the package index belong to the caller."""
    settings = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    return {**system_environment(), **settings}
