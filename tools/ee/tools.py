# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that build and run the execution environment: ansible-builder and ansible-runner."""

from __future__ import annotations

import sys
from pathlib import Path

from ..hosts.site import run
from ..kubernetes.cache import ensure
from ..locks import folder_lock
from .site import BIN, CACHE, CHECKOUT, client_environment

_LOCK = CHECKOUT / "requirements" / "ee-tools.txt"


def ensure_tools() -> Path:
    """Return the folder with the Python packages ansible-builder and ansible-runner. Raises ProcessError.

    The caller must hold the lock of the cache.
    """

    def create(folder: Path) -> None:
        command = [str(BIN / "uv"), "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        command += [f"--python={BIN / 'python'}", f"--target={folder}", f"--requirement={_LOCK}"]
        run(command, "install ansible-builder and ansible-runner", client_environment())

    return ensure("ee-tools", [_LOCK, str(Path(sys.executable).resolve())], create)


def runner_environment() -> dict[str, str]:
    """Return the environment variables of ansible-runner outside of the image. Raises ProcessError."""
    with folder_lock(CACHE):
        packages = ensure_tools()
    return {**client_environment(), "PYTHONPATH": str(packages)}
