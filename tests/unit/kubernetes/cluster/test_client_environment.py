# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the environment that affect requests to the API server: credentials in a netrc file, and proxies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio.client import Configuration

from openipu.kubernetes.cluster.client import NODES, Client
from tests.unit.kubernetes.cluster.http_server import serving


@contextlib.asynccontextmanager
async def server() -> AsyncIterator[tuple[str, list[web.Request]]]:
    """Yield the URL of a server without objects, and its requests."""
    requests: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        requests.append(request)
        return web.json_response({"items": [], "metadata": {"resourceVersion": "1"}})

    async with serving(answer) as url:
        yield url, requests


def configuration(host: str) -> Configuration:
    """Return a configuration with a token."""
    return Configuration(host=host, api_key={"BearerToken": "secret"}, api_key_prefix={"BearerToken": "Bearer"})


def test_credentials_of_a_netrc_file_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "netrc"
    file.write_text("default login admin password secret\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))

    async def run() -> None:
        async with server() as (url, requests), Client(configuration(url)) as client:
            await client.list(NODES)
            assert [each.headers["Authorization"] for each in requests] == ["Bearer secret"]

    asyncio.run(run())


def test_requests_start_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with server() as (url, requests), Client(configuration(url)) as client:
            loop, calls = asyncio.get_running_loop(), list[Any]()
            start = loop.run_in_executor

            def counted(*arguments: Any) -> Any:
                calls.append(arguments)
                return start(*arguments)

            monkeypatch.setattr(loop, "run_in_executor", counted)
            for _ in range(5):
                await client.list(NODES)
            assert (len(requests), calls) == (5, [])

    asyncio.run(run())


@pytest.mark.parametrize(("excluded", "proxied"), [("", 1), ("api.invalid", 0)])
def test_proxies_of_the_environment_are_used(monkeypatch: pytest.MonkeyPatch, excluded: str, proxied: int) -> None:
    async def run() -> None:
        async with server() as (url, requests):
            monkeypatch.setenv("http_proxy", url)
            monkeypatch.setenv("no_proxy", excluded)
            async with Client(configuration("http://api.invalid")) as client:
                with contextlib.suppress(Exception):  # nothing else has this name
                    await client.list(NODES)
            assert [str(each.url) for each in requests] == ["http://api.invalid/api/v1/nodes?limit=500"] * proxied

    asyncio.run(run())


def test_a_proxy_of_the_configuration_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with server() as (url, requests):
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
            settings = configuration("http://api.invalid")
            settings.proxy = url
            async with Client(settings) as client:
                await client.list(NODES)
            assert len(requests) == 1

    asyncio.run(run())


def test_a_proxy_with_tls_in_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with server() as (url, requests):
            monkeypatch.setenv("http_proxy", "https://127.0.0.1:9")
            monkeypatch.setenv("no_proxy", "")
            async with Client(configuration(url)) as client:
                await client.list(NODES)
            assert len(requests) == 1

    asyncio.run(run())
