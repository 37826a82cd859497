# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache of built files and folders. Their names have a fingerprint of their inputs, so a changed input makes a new one.

Callers hold the lock of the cache. Several checkouts may share it, so the newest entries of each name are kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from .site import CACHE

_KEPT = 3
_DIGITS = 12  # of a fingerprint


def fingerprint(inputs: Iterable[str | Path]) -> str:
    """Return a fingerprint of texts, and of files with their names."""
    digest = hashlib.sha256()
    for each in inputs:
        content = each.read_bytes() if isinstance(each, Path) else each.encode()
        name = each.name if isinstance(each, Path) else ""
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_DIGITS]


def ensure(name: str, inputs: Iterable[str | Path], create: Callable[[Path], None], suffix: str = "") -> Path:
    """Return the entry for these inputs. ``create`` writes a missing one to the path that it receives."""
    path = CACHE / f"{name}-{fingerprint(inputs)}{suffix}"
    if path.exists():
        os.utime(path)
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="building-") as scratch:
        new = Path(scratch) / path.name
        create(new)
        new.rename(path)
    os.utime(path)
    _remove_outdated(name, suffix)
    return path


def _remove_outdated(name: str, suffix: str) -> None:
    found = sorted(CACHE.glob(f"{name}-{'[0-9a-f]' * _DIGITS}{suffix}"), key=lambda each: each.stat().st_mtime)
    for outdated in found[:-_KEPT]:
        if outdated.is_dir():
            shutil.rmtree(outdated)
        else:
            outdated.unlink()
