# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/bootstrap.sh reports the progress of a long installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

# The first installation lasts until the test writes to the pipe.
UV = """#!/bin/sh
case "$1 $2" in
"--version ") exec sed -n 's/^uv==\\([0-9.]*\\).*/uv \\1/p' requirements/bootstrap.txt ;;
"pip sync") exec timeout 30 cat pipe ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, the Python of this test, and an imitation of uv."""
    for name in ("tools/bootstrap.sh", "requirements/bootstrap.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    (programs / "uv").write_text(UV)
    (programs / "uv").chmod(0o755)
    site = tmp_path / "site"
    (programs / "python").write_text(f'#!/bin/sh\ncase "$2" in *sysconfig*) echo {site} ;; esac\n')
    (programs / "python").chmod(0o755)
    (programs / "activate").touch()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.timeout(60)
def test_a_long_installation_reports_its_progress(checkout: Path) -> None:
    with subprocess.Popen(
        [checkout / "tools/bootstrap.sh"],
        env={**os.environ, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as script:
        assert script.stdout
        assert script.stdout.readline() == "Installing the locked requirements …\n"
        assert script.stdout.readline() == "    4 s  Installing the locked requirements\n"
        (checkout / "pipe").write_text("")
        assert script.stdout.read() == ""
    assert script.returncode == 0
    assert (checkout / ".venv/.ready").exists()


def test_an_environment_without_activate_is_created_again(checkout: Path) -> None:
    """An interrupted venv leaves a Python that works, without the scripts."""
    (checkout / ".venv/bin/activate").unlink()
    (checkout / "python").write_text('#!/bin/sh\ncase "$1" in --version) echo Python 3.11.2 ;; -m) exit 3 ;; esac\n')
    (checkout / "python").chmod(0o755)
    done = subprocess.run(
        [checkout / "tools/bootstrap.sh"],
        env={**os.environ, "PYTHON": str(checkout / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "Creating .venv with Python 3.11.2 …\n"
    assert done.returncode == 3
