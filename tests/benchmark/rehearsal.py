# SPDX-License-Identifier: GPL-3.0-or-later
"""Duration of ``openipu-pod rehearse``, from the files of a POD to the report."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from .measure import Table, Target, alternate, command

PROGRAM = str(Path(sys.executable).parent / "openipu-pod")
_RACKS = (1, 4)


def bench_rehearsal(table: Table, rounds: int) -> None:
    """Measure the rehearsal of four racks; peer: a rehearsal of one rack."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for racks in _RACKS:
            command([PROGRAM, "init", f"{folder}/{racks}", "--racks", str(racks)])
        rehearse = {
            str(racks): lambda pod=f"{folder}/{racks}": command([PROGRAM, "rehearse", pod], "site.yml succeeds")
            for racks in _RACKS
        }
        one, four = alternate(rounds, rehearse, {}).values()
    load = os.getloadavg()[0]
    table.add(
        f"rehearsal of 4 racks, from pod.yml to the report (load {load:.1f} at the end)",
        f"{four.wall:.1f} s, {four.cpu:.1f} s CPU",
        f"one rack {one.wall:.1f} s, {one.cpu:.1f} s CPU",
        Target("≤ 60 s", 60),
        four.wall,
    )
