# SPDX-License-Identifier: GPL-3.0-or-later
"""Checkout with a cloud of its own, for the commands of pages."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import ROOT
from tests.docs.shell import Shell, checkout
from tools.openstack.site import CACHE

# Files that `make openstack-up` reads.
_NEEDED = ("tools/__init__.py", "tools/commandline.py", "tools/locks.py", "tools/openstack/")


@contextmanager
def cloud_checkout(folder: Path, *more: str) -> Iterator[tuple[Shell, Path]]:
    """Yield a shell in a new checkout, which can start a cloud, and the folder of the checkout.

    At the end, stop the cloud. ``more``: prefixes of further files.
    """
    copy = folder / "openipu.pod"
    with checkout(folder, more=(*_NEEDED, *more)) as shell:
        cache = copy / ".cache/openstack"
        cache.mkdir(parents=True)
        for name in ("venv", "prepared", "horizon", "ironic"):  # installed packages and prepared databases
            (cache / name).symlink_to(CACHE / name)
        (copy / ".cache/redfish").symlink_to(ROOT / ".cache/redfish")  # the emulator of BMCs
        shell.run("mount -t tmpfs tmpfs /run", 20)  # namespaces that a page names
        try:
            yield shell, copy
        finally:
            subprocess.run([sys.executable, "-m", "tools.openstack", "down"], cwd=copy, timeout=120, check=True)
    assert not (cache / "cloud").exists()
