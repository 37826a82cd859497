# SPDX-License-Identifier: GPL-3.0-or-later
"""Passed checks run again only when a file changed that they may depend on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with the script, and with a Python file of the program and one of the tools."""
    for name in ("src/openipu/a.py", "tools/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one\n")
    shutil.copy(ROOT / "tools/unless_passed.sh", tmp_path / "tools")
    (tmp_path / ".gitignore").write_text(".cache/\nruns\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def runs(checkout: Path, *options: str, status: int = 0) -> int:
    """Run a check with an exit status; return how often it has run so far."""
    check = checkout / "check"
    check.write_text(f"echo run >>runs\nexit {status}\n")
    done = subprocess.run(["tools/unless_passed.sh", *options, "sh", "check"], cwd=checkout, capture_output=True)
    assert done.returncode == status, done.stderr
    return (checkout / "runs").read_text().count("run")


@pytest.mark.parametrize(("options", "after_program"), [((), 1), (("--all",), 2)])
def test_changed_files_repeat_a_passed_check(checkout: Path, options: tuple[str, ...], after_program: int) -> None:
    assert runs(checkout, *options) == runs(checkout, *options) == 1
    (checkout / "src/openipu/a.py").write_text("two\n")
    assert runs(checkout, *options) == after_program
    (checkout / "tools/b.py").write_text("two\n")
    assert runs(checkout, *options) == after_program + 1
    (checkout / "src/openipu/new.py").touch()
    assert runs(checkout, *options) == after_program + 2


def test_a_missing_result_is_written_again(checkout: Path) -> None:
    """Here, the file with the runs is the result."""
    assert runs(checkout, "--writes", "runs") == runs(checkout, "--writes", "runs") == 1
    (checkout / "runs").unlink()
    assert runs(checkout, "--writes", "runs") == 1


def test_a_failed_check_runs_again(checkout: Path) -> None:
    assert runs(checkout, status=1) == 1
    assert runs(checkout, status=1) == 2
