# SPDX-License-Identifier: GPL-3.0-or-later
"""Time, size and memory of ``ansible-inventory`` for many racks."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from openipu.twin.launch.generate import PodSize
from tests import ROOT

from .measure import Table, Target

MEGABYTE = 1_000_000
PROGRAM = str(Path(sys.executable).parent / "ansible-inventory")
MODES = {"--list": (), "--list --export": ("--export",)}


@dataclass(frozen=True)
class _Output:
    """One run: CPU seconds, and bytes of the output and of the peak memory."""

    cpu: float
    size: int
    memory: int


def bench_inventory(table: Table, rounds: int) -> None:
    """Measure an inventory of 64 racks; peer: an inventory of one rack."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        pods = {
            racks: PodSize(racks=racks, partitions=4, devices=True).write(Path(folder, str(racks))) for racks in (1, 64)
        }
        for mode, options in MODES.items():
            runs = [{racks: _run(pod, options) for racks, pod in pods.items()} for _ in range(rounds)]
            one, many = (median(each[racks].cpu for each in runs) for racks in pods)
            ratio = many / one
            table.add(
                f"ansible-inventory {mode}, 64 racks, 1281 hosts, CPU",
                f"{many:.1f} s ({ratio:.1f} × one rack)",
                f"one rack {one:.2f} s",
                Target("≤ 10 × one rack", 10),
                ratio,
            )
            size, memory = (max(getattr(each[64], name) for each in runs) / MEGABYTE for name in ("size", "memory"))
            per_rack = f"one rack {runs[0][1].size / MEGABYTE:.2f} MB"
            table.add("same, size", f"{size:.1f} MB", per_rack, Target("≤ 30 MB", 30), size)
            table.add("same, peak memory", f"{memory:.0f} MB", "", Target("≤ 500 MB", 500), memory)


def _run(pod: Path, options: tuple[str, ...]) -> _Output:
    """Run the program once. Raises RuntimeError with its messages."""
    command = [PROGRAM, "-i", str(pod), "--list", *options]
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            messages.seek(0)
            raise RuntimeError(f"Cannot measure '{' '.join(command)}': {messages.read().decode()}")
        size = os.fstat(output.fileno()).st_size
    return _Output(usage.ru_utime + usage.ru_stime, size, usage.ru_maxrss * 1024)
