# SPDX-License-Identifier: GPL-3.0-or-later
"""A shell for the commands of a page, with kubectl and Helm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.shell import Shell, checkout
from tests.kubernetes.cluster import Cluster
from tools.kubernetes import helm


@contextmanager
def page_shell(cluster: Cluster, folder: Path, more: tuple[str, ...] = ()) -> Iterator[Shell]:
    """Open a shell in a copy of the checkout. It reaches the cluster. ``more``: prefixes of further files."""
    programs = f"{cluster.kubectl_program.parent}:{helm.program().parent}:{os.environ['PATH']}"
    variables = {"PATH": programs, "KUBECONFIG": str(cluster.kubeconfig)}
    with checkout(folder, own_network=False, more=more, **variables) as shell:
        yield shell
