# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the tutorial of Kubernetes work as printed, from a fresh copy of the checkout.

They install a release of their own, so this file must follow the last one that uses the release of the other tests.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import ROOT
from tests.docs.shell import checkout, run_page
from tests.kubernetes.cluster import Cluster
from tools.kubernetes import helm

PAGE = ROOT / "docs/tutorials/kubernetes.md"


@pytest.mark.timeout(1800)
def test_the_commands_of_the_tutorial_work(node: Cluster, tmp_path: Path) -> None:
    programs = f"{node.kubectl_program.parent}:{helm.program().parent}:{os.environ['PATH']}"
    with checkout(tmp_path, own_network=False, PATH=programs, KUBECONFIG=str(node.kubeconfig)) as shell:
        run_page(PAGE, shell, 600)
