# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of a page work as printed, from a fresh copy of the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from .messages import ROOT
from .shell import checkout, run_page

PAGES = (
    "README.md",
    "docs/explanation/placement.md",
    "docs/how-to/cluster-tests.md",
    "docs/how-to/rack-report.md",
    "docs/how-to/rehearsal.md",
    "docs/how-to/switches.md",
    "docs/reference/inventory.md",
    "docs/reference/twin.md",
    "docs/tutorials/first-pod.md",
    "docs/tutorials/day-two.md",
    "docs/tutorials/own-rack.md",
    "docs/tutorials/unboxed-rack.md",
)


@pytest.mark.runs
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    with checkout(tmp_path) as shell:
        run_page(ROOT / page, shell)
