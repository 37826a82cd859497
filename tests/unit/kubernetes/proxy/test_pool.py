# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of V-IPU controllers follow the list and the credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from openipu.kubernetes.cluster.client import ApiError
from openipu.kubernetes.proxy.pool import Pool


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    (tmp_path / "controllers.yaml").write_text("vipu1:8090\nvipu2:8090\n")
    write(tmp_path, "vipu1_8090", "first")
    write(tmp_path, "default", "other")
    made = Pool(tmp_path / "controllers.yaml", tmp_path / "credentials")
    yield made
    made.close()


def write(folder: Path, controller: str, key: str) -> None:
    credentials = folder / "credentials" / controller
    credentials.mkdir(parents=True, exist_ok=True)
    (credentials / "user-id").write_text("kubernetes\n")
    (credentials / "access-key").write_text(f"{key}\n")


def keys(pool: Pool) -> list[str]:
    return [each._client.connection.access_key for each in pool]


def test_each_controller_has_its_credentials(pool: Pool) -> None:
    assert keys(pool) == ["first", "other"]


def follow(pool: Pool) -> bool:
    """Follow the list once in an event loop, and return whether anything was read again."""
    return asyncio.run(pool.follow())


def addresses(pool: Pool) -> list[str]:
    return [each.controller.address for each in pool]


def test_a_fetched_list_replaces_the_file(tmp_path: Path) -> None:
    (tmp_path / "controllers.yaml").write_text("vipu1:8090\n")
    fetched: list[str | Exception] = ["vipu2:8090\n", "no controller", ApiError("down"), "vipu3:8090\n"]

    async def fetch() -> str:
        found = fetched.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    pool = Pool(tmp_path / "controllers.yaml", tmp_path / "credentials", fetch=fetch)
    assert addresses(pool) == ["vipu1:8090"]
    assert follow(pool)
    for error in (ValueError, ApiError):
        with pytest.raises(error):
            follow(pool)
        assert addresses(pool) == ["vipu2:8090"]
    assert follow(pool)
    assert addresses(pool) == ["vipu3:8090"]


@pytest.mark.parametrize("changed", ["vipu1_8090", "default"])
def test_changed_credentials_are_used_for_new_calls(pool: Pool, tmp_path: Path, changed: str) -> None:
    before = list(pool)
    assert not follow(pool)
    write(tmp_path, changed, "second")
    assert follow(pool)
    assert "second" in keys(pool)
    assert [new is old for new, old in zip(pool, before, strict=True)] == [changed == "default", changed != "default"]
    assert not follow(pool)


def test_a_folder_of_its_own_replaces_the_default(pool: Pool, tmp_path: Path) -> None:
    write(tmp_path, "vipu2_8090", "own")
    assert follow(pool)
    assert keys(pool) == ["first", "own"]


@pytest.mark.parametrize("name", ["controllers.yaml", "credentials/vipu1_8090/access-key"])
def test_files_with_bytes_that_are_no_text(pool: Pool, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xff")
    with pytest.raises(ValueError, match=f"Cannot read '.*{name}': it is not UTF-8 text"):
        follow(pool)
    assert keys(pool) == ["first", "other"]
