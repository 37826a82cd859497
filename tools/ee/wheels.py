# SPDX-License-Identifier: GPL-3.0-or-later
"""Python packages for the build of the image, which has no network."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from packaging.requirements import Requirement

from ..hosts.site import run
from ..kubernetes.cache import ensure
from .site import DEFINITION, client_environment

LOCK = DEFINITION.with_name("requirements.txt")
BUILDER_LOCK = DEFINITION.parents[2] / "requirements" / "ee-tools.txt"
PYTHON = "3.11"  # of Debian bookworm
_OLDEST_GLIBC, _GLIBC = 17, 36  # minor versions: of the oldest platform with wheels, and of Debian bookworm
_SOURCE_ONLY = ("pyeapi",)  # packages without a wheel
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")


def locked(lock: Path) -> dict[str, str]:
    """Return the packages of a lock with their versions, for the Python of the image."""
    environment = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0"}
    found = {}
    for line in lock.read_text().splitlines():
        if match := _PINNED.match(line):
            requirement = Requirement(line.removesuffix("\\").strip())
            if not requirement.marker or requirement.marker.evaluate(environment):
                found[match[1].lower()] = match[2]
    return found


def ensure_wheels(report: Callable[[str], None]) -> Path:
    """Return the folder of the packages of both locks. Raises ProcessError.

    The caller must hold the lock of the cache.
    """
    platforms = [f"manylinux_2_{minor}_{platform.machine()}" for minor in range(_OLDEST_GLIBC, _GLIBC + 1)]
    platforms += [f"manylinux2014_{platform.machine()}"]
    locks = [LOCK, BUILDER_LOCK]

    def create(folder: Path) -> None:
        report("Downloading the Python packages of the execution environment …")
        for lock in locks:
            _download(lock, platforms, folder)

    return ensure("ee-wheels", [*platforms, PYTHON, *_SOURCE_ONLY, *locks], create)


def _download(lock: Path, platforms: Sequence[str], folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--require-hashes", "--only-binary=:all:"]
    command += [f"--no-binary={name}" for name in _SOURCE_ONLY]
    command += [f"--python-version={PYTHON}", *(f"--platform={each}" for each in platforms)]
    command += [f"--dest={folder}", f"--requirement={lock}"]
    run(command, f"download the packages of {lock.name}", client_environment())
