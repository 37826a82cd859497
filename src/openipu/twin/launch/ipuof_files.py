# SPDX-License-Identifier: GPL-3.0-or-later
"""Removal of the IPUoF files that ``vipu create partition`` wrote for partitions of a twin."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from openipu.shared.vipu.ipuof import USER_FOLDER


def remove(rack: Path, report: Callable[[str], None]) -> None:
    """Remove the files of the user whose IPUs are all in machines of a twin, and report each.

    ``rack`` is the configuration of its rack process. Files of other twins and of real PODs are kept.
    """
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # RuntimeError: there is no home folder
        clusters = json.loads(rack.read_text())["clusters"]
        own = {machine["rnic_address"] for cluster in clusters for machine in cluster["machines"]}
        for path in sorted(USER_FOLDER.expanduser().glob("*_ipuof.conf")):
            addresses = _addresses(path)
            if addresses and addresses <= own:
                path.unlink()
                report(f"Removed {path}: its partition was on this twin.")


def _addresses(path: Path) -> set[str]:
    """Return the addresses of the machines in a file, none if it has another format."""
    try:
        return {str(device["ip"]) for device in json.loads(path.read_text())["devices"]}
    except (OSError, ValueError, LookupError, TypeError):
        return set()
