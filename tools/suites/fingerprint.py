# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprint of a suite: a hash of everything its result depends on."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from pathlib import Path

from .suite import Suite

RECORD = "tests/passed.json"


def git(root: Path, *arguments: str) -> str:
    """Return the output of a git command in a checkout."""
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout  # noqa: S603, S607


def tracked(root: Path) -> list[str]:
    """Return the tracked files of a checkout without the record, which the runs themselves write."""
    return [
        name for name in git(root, "ls-files", "-z").split("\0") if name and name != RECORD and (root / name).is_file()
    ]


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Return the version of each Debian package; empty for those that are not installed."""
    if not packages:
        return {}
    command = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${db:Status-Abbrev}\n", *packages]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
    except FileNotFoundError:
        shown = ""
    found = dict.fromkeys(packages, "")
    for line in shown.splitlines():
        name, version, status = [*line.split(), "", ""][:3]
        if status.startswith("ii"):
            found[name] = version
    return found


def fingerprint(suite: Suite, root: Path) -> str:
    """Return the hash of a suite's inputs: declared files, Python version, package versions.

    Locked Python packages are covered by the lock files, which are inputs.
    """
    digest = hashlib.sha256()
    links = sorted(
        (name, str((root / name).readlink())) for name in git(root, "ls-files").split() if (root / name).is_symlink()
    )
    digest.update(
        repr((links, suite.commands, platform.python_version(), sorted(versions(suite.packages).items()))).encode()
    )
    for name in tracked(root):
        if suite.reads(name):
            mode = (root / name).stat().st_mode & 0o111
            content = hashlib.sha256((root / name).read_bytes()).digest()
            digest.update(f"{name}\0{bool(mode)}".encode() + content)
    return digest.hexdigest()
