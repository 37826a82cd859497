# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages for damaged records in etcd."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from openipu.vipu.storage.etcd import content, keys
from openipu.vipu.storage.etcd.mirror import Content, DamagedError
from openipu.vipu.storage.interface import StoreError

HEAD = {"revision": 1, "total": 0, "staged": {"name": "1-1", "parts": 2}}
META = {"version": keys.VERSION, "deployment": "d", "epoch": 1, "complete_since": 1}
FAULT = "Parts of a transaction are missing."


def test_the_message_of_a_damaged_transaction_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore reads the records after it has found the damaged transaction."""

    def complete(head: object) -> None:
        raise DamagedError(FAULT)

    leadership = SimpleNamespace(campaign=lambda: True, resign=lambda: None)
    writer = SimpleNamespace(complete=complete, close=lambda: None)
    values: dict[str, Any] = {"Leadership": leadership, "GuardedWriter": writer}
    for name, made in values.items():
        monkeypatch.setattr(content, name, lambda *_, made=made: made)
    monkeypatch.setattr(content.mirror, "read", lambda *_, **__: Content(head=HEAD, meta=META))
    location = keys.parse("etcd://127.0.0.1:1/test")
    with content.exclusive(location, damaged_allowed=True) as target, pytest.raises(StoreError) as raised:
        target.state()
    assert str(raised.value) == f"Cannot read the records in etcd: they are damaged. {FAULT} Restore a backup."
