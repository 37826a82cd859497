# SPDX-License-Identifier: GPL-3.0-or-later
"""A shell for the commands of pages, in whose network a stand-in of AWX has the name on the pages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.awx.runs import CLIENTS, PEERS
from tests.docs.shell import Shell, checkout

HOST = "awx.example.com"


@contextmanager
def open_shell(folder: Path, **variables: str) -> Iterator[Shell]:
    """Open a shell in a copy of the checkout, with awx.awx and the command line ``awx``, which trust the stand-in."""
    authority = str(folder / "certificates/server/ca.crt")
    given = {
        "PATH": f"{os.environ['PATH']}:{CLIENTS}/bin",
        "SSL_CERT_FILE": authority,
        "REQUESTS_CA_BUNDLE": authority,
        **variables,
    }
    with checkout(folder, **given) as shell:
        collections = folder / "home/.ansible/collections/ansible_collections"
        collections.mkdir(parents=True)
        collections.joinpath("awx").symlink_to(PEERS / "ansible_collections/awx")
        shell.name_host(HOST, folder / "hosts")
        yield shell
