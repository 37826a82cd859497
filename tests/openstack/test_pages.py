# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the tutorial of OpenStack work as printed, in a fresh checkout with a cloud of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.shell import checkout, run_page
from tools.openstack.site import CACHE

# Files that `make openstack-up` reads.
NEEDED = ("tools/__init__.py", "tools/commandline.py", "tools/locks.py", "tools/openstack/")
PAGE = ROOT / "docs/tutorials/openstack.md"


@pytest.mark.timeout(1200)
def test_the_commands_of_the_tutorial_work(tmp_path: Path) -> None:
    copy = tmp_path / "openipu.pod"
    with checkout(tmp_path, more=NEEDED) as shell:
        cache = copy / ".cache/openstack"
        cache.mkdir(parents=True)
        for name in ("venv", "prepared"):  # installed packages and prepared databases
            (cache / name).symlink_to(CACHE / name)
        try:
            run_page(PAGE, shell, 600)
        finally:
            subprocess.run([sys.executable, "-m", "tools.openstack", "down"], cwd=copy, timeout=120, check=True)
    assert not (cache / "cloud").exists()
