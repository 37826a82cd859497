# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON Patch (RFC 6902): the changes that a mutating webhook requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Patch = list[dict[str, Any]]


def difference(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Patch:
    """Return the operations that turn one object into another. Lists are replaced as a whole."""
    operations: Patch = [{"op": "remove", "path": _join(path, name)} for name in before if name not in after]
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            operations += difference(old, value, _join(path, name))
        elif name not in before or old != value:
            operations.append({"op": "add", "path": _join(path, name), "value": value})  # add also replaces
    return operations


def _join(path: str, name: str) -> str:
    return f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
