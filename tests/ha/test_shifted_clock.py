# SPDX-License-Identifier: GPL-3.0-or-later
"""The clock of the fault tests jumps while a program uses it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tests.ha.shifted_clock import ShiftedTime

DAY = 86_400


def test_only_the_wall_clock_jumps(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    clock = ShiftedTime(file)
    assert abs(clock.time() - time.time()) < DAY / 2
    file.write_text(str(DAY))
    assert DAY / 2 < clock.time() - time.time() < 2 * DAY
    file.write_text(str(-DAY))
    assert -2 * DAY < clock.time() - time.time() < -DAY / 2
    before = time.monotonic()
    assert before <= clock.monotonic() <= time.monotonic()


def test_running_leaders_use_it() -> None:
    """The modules of a leader that read the wall clock have it: epochs, and the times of resets and relocations."""
    program = "import pathlib; from tests.ha.shifted_clock import shift; print(*shift(pathlib.Path('unused')))"
    shifted = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert {"openipu.vipu.storage.etcd.store", "openipu.vipu.lifecycle.relocator"} <= set(shifted)
