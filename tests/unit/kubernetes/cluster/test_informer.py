# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache of objects: pauses between attempts to follow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from openipu.kubernetes.cluster import informer
from openipu.kubernetes.cluster.client import PODS, ApiError
from openipu.kubernetes.cluster.informer import Informer

DOWN = ApiError("The API server does not respond.")


class EndError(Exception):
    """Raised at the end of the test."""


class Outages:
    """API server that is down for some requests, without any change of objects in between."""

    def __init__(self, lists: list[ApiError | None]) -> None:
        self.lists = lists

    async def list(self, *arguments: Any) -> tuple[list[Any], str]:
        if not self.lists:
            raise EndError
        error = self.lists.pop(0)
        if error is not None:
            raise error
        return [], "1"

    async def watch(self, *arguments: Any) -> AsyncIterator[tuple[str, Any]]:
        raise ApiError("The revision is no longer stored.", 410)
        yield "", {}


def test_pauses_are_short_again_after_success(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(informer.asyncio, "sleep", sleep)
    client: Any = Outages([DOWN, DOWN, DOWN, None, DOWN, None])
    with pytest.raises(ExceptionGroup):
        asyncio.run(Informer(client, PODS, lambda pod: None).run())
    # After the lists that succeed, the stream fails.
    assert pauses == [0.2, 0.4, 0.8, 0.2, 0.4, 0.2]
