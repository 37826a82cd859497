# SPDX-License-Identifier: GPL-3.0-or-later
"""Upgrade of controllers on etcd: they continue with the records that the code of an earlier commit wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.earlier_releases import content
from tests.ha.controllers import Controllers
from tests.waiting import until


@pytest.fixture
def controllers(url: str, tmp_path: Path) -> Iterator[Controllers]:
    content.load_records(url)
    made = Controllers(tmp_path, url, count=2, initialise=False)
    yield made
    made.close()


def test_records_of_earlier_code_are_complete_and_writable(controllers: Controllers) -> None:
    before = json.loads(content.OBJECTS.read_text())
    leader = controllers.wait_leader()
    assert content.read(leader.address) == before
    content.rename_user(leader.address, "alice", "bob")
    leader.kill()
    leader = until(lambda: (each := controllers.leader()) and each is not leader and each, 60, controllers.logs)
    after = content.read(leader.address)
    assert [user["id"] for user in after.pop("users")] == ["bob"]
    assert after == {kind: found for kind, found in before.items() if kind != "users"}
