# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrade of the database that the code of an earlier commit wrote."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from openipu.vipu.storage import migrations
from tests.earlier_releases import content
from tests.integration.vipu_servers import Process


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "vipu.db"
    content.load_database(path)
    return path


def version(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        found: str = connection.execute("SELECT version_num FROM alembic_version").fetchone()[0]
    return found


def test_the_database_of_earlier_code_rolls_forward_with_all_objects(database: Path) -> None:
    assert version(database) < migrations.HEAD
    before = json.loads(content.OBJECTS.read_text())
    assert all(before.values())
    for _start in ("first", "second"):
        server = Process("--database", str(database))
        try:
            assert content.read(server.address) == before
        finally:
            assert server.stop() == 0
        assert version(database) == migrations.HEAD


def test_changes_after_the_upgrade_survive_a_restart(database: Path) -> None:
    server = Process("--database", str(database))
    content.rename_user(server.address, "alice", "bob")
    server.kill()
    server = Process("--database", str(database))
    try:
        assert [user["id"] for user in content.read(server.address)["users"]] == ["bob"]
    finally:
        assert server.stop() == 0
