# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the tutorial of Kubernetes work as printed, from a fresh copy of the checkout.

They install a release of their own, so this file must follow the last one that uses the release of the other tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.shell import run_page
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.pages import page_shell

PAGE = ROOT / "docs/tutorials/kubernetes.md"


@pytest.mark.timeout(1800)
def test_the_commands_of_the_tutorial_work(node: Cluster, tmp_path: Path) -> None:
    with page_shell(node, tmp_path) as shell:
        run_page(PAGE, shell, 600)
