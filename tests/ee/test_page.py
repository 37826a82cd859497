# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the page execution-environment.md work as printed, with the programs of this checkout."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.blocks import commands
from tests.docs.shell import Shell, run_block
from tools.ee.image import Image
from tools.ee.podman import Podman

PAGE = ROOT / "docs/how-to/execution-environment.md"


@pytest.mark.timeout(900)
def test_the_commands_of_the_page_work(image: Image, tmp_path: Path) -> None:
    assert Path(image.store).exists()
    podman = Podman(tmp_path)  # the reader has another one than the build
    path = f"{Path(sys.executable).parent}:{podman.environment['PATH']}"
    shell = Shell(tmp_path, tmp_path, {**podman.environment, "PATH": path, "PYTHONPATH": str(ROOT)})
    try:
        for folder in ("/run", "/dev/shm"):
            shell.run(f"mount -t tmpfs tmpfs {folder}", 20)
        for block in commands(PAGE):
            if not block.not_run:
                # A container would read the next commands of the shell.
                run_block(replace(block, text=f"{{\n{block.text}}} </dev/null\n"), shell, 600)
    finally:
        shell.kill()
        shell.close()
