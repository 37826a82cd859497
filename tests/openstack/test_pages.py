# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of pages of OpenStack work as printed, in a fresh checkout with a cloud of its own."""

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


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", ["docs/how-to/openstack-loopback.md", "docs/tutorials/openstack.md"])
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    copy = tmp_path / "openipu.pod"
    with checkout(tmp_path, more=NEEDED) as shell:
        cache = copy / ".cache/openstack"
        cache.mkdir(parents=True)
        for name in ("venv", "prepared", "horizon", "ironic"):  # installed packages and prepared databases
            (cache / name).symlink_to(CACHE / name)
        (copy / ".cache/redfish").symlink_to(ROOT / ".cache/redfish")  # the emulator of BMCs
        shell.run("mount -t tmpfs tmpfs /run", 20)  # namespaces that a page names
        try:
            run_page(ROOT / page, shell, 600)
        finally:
            subprocess.run([sys.executable, "-m", "tools.openstack", "down"], cwd=copy, timeout=120, check=True)
    assert not (cache / "cloud").exists()
