# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the tutorial high-availability.md work as printed, in a network of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.shell import checkout, run_page

PAGE = ROOT / "docs/tutorials/high-availability.md"


@pytest.mark.timeout(600)
def test_the_commands_of_the_tutorial_work(tmp_path: Path) -> None:
    with checkout(tmp_path, TMPDIR=str(tmp_path)) as shell:
        try:
            run_page(PAGE, shell)
        finally:
            shell.kill()
    assert list(tmp_path.glob("tmp.*")) == []
