# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to an API server that does not serve custom resources yet, or has no such object."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio.client import Configuration

from openipu.kubernetes.cluster.client import IPUJOBS, NODES, ApiError, Client, open_client
from tests.unit.kubernetes.cluster.http_server import serving

STATUS = {"kind": "Status", "status": "Failure", "message": "not found", "reason": "NotFound", "code": 404}


@contextlib.asynccontextmanager
async def client(*, is_starting: bool) -> AsyncIterator[Client]:
    """Yield a client of an API server without jobs."""

    async def answer(request: web.Request) -> web.Response:
        return (
            web.Response(status=404, text="404 page not found\n")
            if is_starting
            else web.json_response(STATUS, status=404)
        )

    async with serving(answer) as url, Client(Configuration(host=url)) as found:
        yield found


def test_an_object_is_missing_after_a_status_with_reason_not_found() -> None:
    async def run() -> None:
        async with client(is_starting=False) as found:
            assert await found.find(IPUJOBS, "default", "job") is None
            await found.delete(IPUJOBS, "default", "job")

    asyncio.run(run())


def test_no_object_is_missing_while_the_api_server_starts() -> None:
    async def run() -> None:
        async with client(is_starting=True) as found:
            for request in (found.find, found.delete):
                with pytest.raises(ApiError, match="404 page not found") as raised:
                    await request(IPUJOBS, "default", "job")
                assert not raised.value.is_missing

    asyncio.run(run())


@pytest.mark.parametrize(("header", "seconds"), [("2", 2.0), ("", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0)])
@pytest.mark.parametrize("body", ['{"message": "later", "reason": "ServerTimeout"}', "Too many requests."])
def test_an_error_has_the_pause_that_the_server_requests(header: str, seconds: float, body: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=429, text=body, headers={"Retry-After": header} if header else {})

    async def run() -> None:
        async with serving(answer) as url, Client(Configuration(host=url)) as found:
            with pytest.raises(ApiError) as raised:
                await found.list(NODES)
        assert raised.value.is_temporary
        assert raised.value.retry_seconds == seconds

    asyncio.run(run())


def test_a_long_list_is_in_memory_page_by_page_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node(dict[str, Any]):
        """A dictionary that can be observed."""

    listed: list[weakref.ref[Node]] = []

    async def request(method: str, path: str, query: dict[str, str]) -> dict[str, Any]:
        assert [each() for each in listed if each() is not None] == []
        page = int(query.get("continue") or 0)
        nodes = [Node(name=f"{page}-{number}") for number in range(3)]
        listed.extend(map(weakref.ref, nodes))
        metadata = {"continue": str(page + 1) if page < 3 else "", "resourceVersion": "7"}
        return {"items": nodes, "metadata": metadata}

    async def run() -> None:
        async with client(is_starting=False) as found:
            monkeypatch.setattr(found, "request", request)
            names, revision = await found.list(NODES, keep=lambda node: {"name": node["name"]})
        assert revision == "7"
        assert len(names) == len(listed) == 12

    asyncio.run(run())


@pytest.mark.parametrize("content", [b"\xff", b"a: \0", b"[", b"- a", b"a: b"])
def test_configurations_that_are_not_valid(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config").write_bytes(content)
    with pytest.raises(ApiError, match=r"^Cannot find the API server: .*config"):
        asyncio.run(open_client(str(tmp_path / "config")))
