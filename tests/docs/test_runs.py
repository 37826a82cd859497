# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of a page work as printed, from a fresh copy of the checkout."""

from __future__ import annotations

import pytest

from tests import ROOT

from .shell import checkout, run_page

# The pages of a group share a checkout and its twin, with the objects that earlier pages created.
GROUPS = (
    ("README.md",),
    ("docs/explanation/placement.md",),
    ("docs/how-to/cluster-tests.md",),
    ("docs/how-to/rehearsal.md",),
    ("docs/reference/inventory.md",),
    ("docs/reference/twin.md",),
    ("docs/tutorials/first-pod.md",),
    ("docs/tutorials/day-two.md",),
    ("docs/tutorials/own-rack.md",),
    ("docs/tutorials/unboxed-rack.md",),
    (
        "docs/how-to/switches.md",
        "docs/how-to/rack-report.md",
        "docs/how-to/real-rack.md",
        "docs/how-to/power.md",
        "docs/how-to/out-of-service.md",
        "docs/reference/metrics.md",
        "docs/reference/command-lines.md",
        "docs/how-to/objects.md",
    ),
    (
        "docs/how-to/several-pods.md",
        "docs/how-to/certificates.md",
        "docs/how-to/ipu-machines.md",
        "docs/reference/controller.md",
        "docs/reference/pod-model.md",
    ),
)
PAGES = [page for group in GROUPS for page in group]


@pytest.mark.runs
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("pages", [pytest.param(group, id=group[0]) for group in GROUPS])
def test_the_commands_of_a_page_work(pages: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("page")  # a short name: paths of sockets have at most 107 characters
    with checkout(folder) as shell:
        for page in pages:
            shell.run(f"cd {folder}/openipu.pod", 20)
            run_page(ROOT / page, shell)
