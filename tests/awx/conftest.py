# SPDX-License-Identifier: GPL-3.0-or-later
"""Running stand-ins of AWX: empty ones, and one to which the small description was applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.awx.runs import DESCRIPTION, Run, run_playbook
from tests.awx.standin.server import Server

PROJECT = "https://git.example.com/lab.git"


@dataclass(frozen=True)
class Applied:
    """A stand-in, and the two runs that applied the description: first in check mode."""

    server: Server
    check: Run
    writes_of_check: int
    apply: Run


def project(folder: Path) -> dict[str, Path]:
    """Return a project with two playbooks, by its address."""
    checkout = folder / "lab"
    checkout.mkdir()
    for name in ("site.yml", "order.yml"):
        (checkout / name).write_text("- hosts: all\n")
    return {PROJECT: checkout}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    folder = tmp_path_factory.mktemp("awx")
    with Server(folder, project(folder)) as server:
        variables = {"awx_content_folder": str(DESCRIPTION)}
        check = run_playbook(server, folder, "--check", variables=variables)
        writes = len(server.awx.writes)
        yield Applied(server, check, writes, run_playbook(server, folder, variables=variables))


@pytest.fixture
def applied(shared: Applied) -> Applied:
    """A stand-in with the objects of the small description, and an empty log of requests."""
    shared.server.awx.requests.clear()
    return shared


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Server]]:
    """Return a function that starts an empty stand-in."""
    with ExitStack() as servers:

        def new() -> Server:
            return servers.enter_context(Server(tmp_path, project(tmp_path)))

        yield new
