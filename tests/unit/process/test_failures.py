# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of programs that cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = (
    "vipu.cli.user",
    "vipu.cli.admin",
    "vipu.cli.older",
    "vipu.server.main",
    "twin.cli.main",
    "pod_files.cli.main",
)
FULL = Path("/dev/full")
MESSAGE = "Error OPU620: Cannot write the output: no space left on device. If the command made changes, they remain.\n"


def command(program: str, *options: str) -> list[str]:
    return [sys.executable, "-m", f"openipu.{program}", *options]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_full_disk_is_one_message(program: str) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            command(program, "--help"), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (1, MESSAGE)


def test_an_error_on_a_full_disk() -> None:
    """The message cannot be written either, so the exit status is the only report."""
    with FULL.open("w") as full:
        done = subprocess.run(
            command("vipu.cli.user", "get", "partition"), stdout=full, stderr=full, timeout=60, check=False
        )
    assert done.returncode == 1


def test_a_missing_database_is_no_error_of_the_output(tmp_path: Path) -> None:
    done = subprocess.run(
        command("vipu.server.main", "check", "--database", str(tmp_path / "x.db")),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "Error OPU613")
