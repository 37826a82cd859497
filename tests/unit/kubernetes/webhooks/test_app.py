# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the webhooks that arrive slowly."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from openipu.kubernetes.webhooks import app
from openipu.kubernetes.webhooks.reviews import Answer, Review

REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "1", "operation": "CREATE", "namespace": "ns", "object": {"kind": "Pod", "metadata": {}}},
}


def test_slow_clients_do_not_block_the_api_server() -> None:
    async def answer(review: Review) -> Answer:
        return Answer()

    stub: Any = SimpleNamespace(mutate=answer, validate=answer)
    served = app.create(stub, stub)

    async def call(body: bytes, *, complete: bool) -> int:
        parts = [{"type": "http.request", "body": body, "more_body": not complete}]
        statuses = []

        async def receive() -> Any:
            if not parts:
                await asyncio.Event().wait()
            return parts.pop()

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        scope = {"type": "http", "method": "POST", "path": app.MUTATE_POD, "headers": [], "query_string": b""}
        await served(scope, receive, send)
        return int(statuses[0])

    async def run() -> None:
        part = b" " * (app.MAX_BYTES // 2)
        slow = [asyncio.create_task(call(part, complete=False)) for _ in range(100)]
        await asyncio.sleep(0)
        async with asyncio.timeout(5):  # less than the time for a body
            assert await call(json.dumps(REVIEW).encode(), complete=True) == 200
            done, _ = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result() for each in done} == {503}
        for each in slow:
            each.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    asyncio.run(run())
