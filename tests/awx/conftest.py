# SPDX-License-Identifier: GPL-3.0-or-later
"""A running stand-in of AWX, and one to which the small description was applied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.awx.runs import DESCRIPTION, run_playbook
from tests.awx.standin.server import Server

PLAYBOOK = "- hosts: all\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("awx")
    project = folder / "lab"
    project.mkdir()
    for name in ("site.yml", "order.yml"):
        (project / name).write_text(PLAYBOOK)
    with Server(folder, {"https://git.example.com/lab.git": project}) as running:
        yield running


@pytest.fixture(scope="module")
def applied(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Server:
    run = run_playbook(server, tmp_path_factory.mktemp("applied"), variables={"awx_content_folder": str(DESCRIPTION)})
    assert run.changes
    return server


@pytest.fixture(autouse=True)
def forget_requests(request: pytest.FixtureRequest) -> None:
    """Start each test with an empty log of requests."""
    for name in ("applied", "server"):
        if name in request.fixturenames:
            server = request.getfixturevalue(name)
            server.awx.requests.clear()
            server.awx.failing.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
