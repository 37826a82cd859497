# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the credentials of the client: metadata of requests, and access keys that must stay secret."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from openipu.shared.vipu.client import Connection
from tests.integration.cli.client_support import failure, get_version, version


def test_credentials_use_the_configured_metadata_keys(serve: Callable[..., int]) -> None:
    seen: list[dict[str, Any]] = []

    def respond(method: str, request: Any, context: Any) -> Any:
        seen.append(dict(context.invocation_metadata()))
        return version(method, request, context)

    port = serve(respond)
    get_version(port, user_id="alice", access_key="k3y")
    get_version(port, user_id="bob", access_key="other", user_id_metadata="x-user", access_key_metadata="x-key")
    get_version(port)
    assert (seen[0]["vipu-user-id"], seen[0]["vipu-access-key"]) == ("alice", "k3y")
    assert (seen[1]["x-user"], seen[1]["x-key"]) == ("bob", "other")
    assert not {"vipu-user-id", "vipu-access-key"} & (set(seen[1]) | set(seen[2]))


@pytest.mark.parametrize("key", ["s3cret\n", "s3cr\u00e9t", "s3cret\x00"])
def test_an_invalid_key_is_not_in_the_message(serve: Callable[..., int], key: str) -> None:
    error = failure(serve(), user_id="alice", access_key=key)
    assert error.code == "INVALID_ARGUMENT" and "Check api_user_id, api_access_key" in error.message
    assert "s3cr" not in error.message + error.details


@pytest.mark.parametrize("host", ["10.3.1.101", "pod.example", "0.0.0.0", "::", "127.0.0.1.example"])
def test_access_keys_need_encryption_off_loopback(host: str) -> None:
    error = failure(8090, host=host, user_id="alice", access_key="s3cret")
    assert error.code == "INVALID_ARGUMENT" and "s3cret" not in error.message
    assert error.message.startswith("Cannot send the access key to ")
    assert error.message.endswith("Set ca_path, client_cert and client_key, or insecure_network to allow it.")


@pytest.mark.parametrize("host", ["localhost", "127.9.9.9", "::1", "[::1]"])
def test_access_keys_on_loopback(host: str) -> None:
    Connection(host, access_key="s3cret").check_exposure()


def test_the_access_key_is_not_shown() -> None:
    assert "s3cret" not in repr(Connection(access_key="s3cret"))
