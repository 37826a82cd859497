# SPDX-License-Identifier: GPL-3.0-or-later
"""Time limits for the messages of calls."""

from __future__ import annotations

from typing import Any

import pytest

from openipu.vipu.api import exchange
from openipu.vipu.api.exchange import Exchanges


class Context:
    """Context of a call. ``cancelled``: number of times that it was cancelled."""

    active = True
    cancelled = 0

    def is_active(self) -> bool:
        return self.active

    def cancel(self) -> None:
        self.cancelled += 1


def test_a_client_that_does_not_read_its_reply_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "SEND_SECONDS", 0.0)
    exchanges, slow, fast = Exchanges(), Context(), Context()
    for context in (slow, fast):
        exchanges.send(_of_grpc(context))
    exchanges.end(_of_grpc(fast))
    exchanges.cancel_late()
    assert (slow.cancelled, fast.cancelled) == (1, 0)


def test_a_call_that_ended_before_its_reply_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "SEND_SECONDS", 0.0)
    exchanges, context = Exchanges(), Context()
    context.active = False
    exchanges.end(_of_grpc(context))
    exchanges.send(_of_grpc(context))
    exchanges.cancel_late()
    assert not context.cancelled
    assert not exchanges._deadlines


def _of_grpc(context: Context) -> Any:
    return context
