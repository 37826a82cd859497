# SPDX-License-Identifier: GPL-3.0-or-later
"""Restores into etcd that fail: the message states what was restored."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openipu.vipu.server.initialise import initialise
from openipu.vipu.storage import backup, losses, transfer
from openipu.vipu.storage.etcd import content, keys
from openipu.vipu.storage.position import UNKNOWN
from openipu.vipu.storage.replacement import Replacement

LOCATION = keys.parse("etcd://127.0.0.1:1/test")


class EmptyStore:
    """Store in etcd without records."""

    empty = True

    def __init__(self) -> None:
        self.replaced = False

    def position(self) -> Any:
        return UNKNOWN

    def replace(self, new: object) -> None:
        self.replaced = True


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> EmptyStore:
    made = EmptyStore()

    @contextlib.contextmanager
    def exclusive(*_: object, **__: object) -> Iterator[EmptyStore]:
        yield made

    monkeypatch.setattr(content, "exclusive", exclusive)
    return made


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    initialise(tmp_path / "vipu.db")
    certs = tmp_path / "certs"
    certs.mkdir()
    (certs / "server.crt").write_text("certificate")
    return backup.create(tmp_path / "vipu.db", certs, tmp_path / "backup.tar.gz")[0]


def failure(archive: Path, certs: Path) -> str:
    """Return the message of a restore that fails."""
    with pytest.raises(backup.BackupError) as caught:
        transfer.restore(archive, LOCATION, certs, overwrite=False, confirm=losses.accept)
    return str(caught.value)


def test_a_failure_before_the_records(store: EmptyStore, archive: Path, tmp_path: Path) -> None:
    message = failure(archive, tmp_path / "vipu.db" / "certs")
    assert message.endswith(f"to '{LOCATION}': file exists ({tmp_path / 'vipu.db'}). Nothing was restored.")
    assert not store.replaced


def test_a_failure_after_the_records(
    store: EmptyStore, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Replacement, "move", full)
    message = failure(archive, tmp_path / "restored")
    assert message.endswith(
        f"to '{LOCATION}': no space left on device. The records were restored, but not the certificates. "
        "Restore again with --overwrite."
    )
    assert store.replaced
    assert not (tmp_path / "restored").exists()
