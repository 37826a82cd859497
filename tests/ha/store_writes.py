# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions of a leader on etcd, which tests write and interrupt."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.vipu.domain.model import Agent, Change, Put
from openipu.vipu.storage.etcd import writes
from openipu.vipu.storage.etcd.client import EtcdClient
from openipu.vipu.storage.etcd.election import Leadership


def agents(count: int) -> list[Change]:
    """Return changes that create agents ``ag0``, ``ag1`` and so on."""
    return [Put(Agent(f"ag{number}", "10.0.0.1", number + 1)) for number in range(count)]


def end_after(monkeypatch: pytest.MonkeyPatch, client: EtcdClient, leadership: Leadership, transactions: int) -> None:
    """Make a leader end after some of its transactions in etcd."""
    call, count = client.call, 0

    def fail(service: str, method: str, *arguments: Any) -> Any:
        nonlocal count
        if method == "Txn":
            count += 1
            if count > transactions:
                leadership.lose()
                raise writes.EtcdUnavailableError("it is gone", None)  # type: ignore[arg-type]
        return call(service, method, *arguments)

    monkeypatch.setattr(client, "call", fail)


def transaction_sizes(client: EtcdClient, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that receives the bytes of each later transaction of a client, in order."""
    call, found = client.call, list[int]()

    def measure(service: str, method: str, request: Any, *arguments: Any) -> Any:
        if method == "Txn":
            found.append(request.ByteSize())
        return call(service, method, request, *arguments)

    monkeypatch.setattr(client, "call", measure)
    return found
