# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of pages of OpenStack work as printed, in a fresh checkout with a cloud of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.shell import run_page
from tests.openstack.cloud_checkout import cloud_checkout


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", ["docs/how-to/openstack-loopback.md", "docs/tutorials/openstack.md"])
def test_the_commands_of_a_page_work(page: str, tmp_path: Path) -> None:
    with cloud_checkout(tmp_path) as (shell, _):
        run_page(ROOT / page, shell, 600)
