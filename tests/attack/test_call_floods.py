# SPDX-License-Identifier: GPL-3.0-or-later
"""Floods of unfinished calls, faster than the controller takes them, by any holder of a client certificate."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin
from openipu.vipu.api.addresses import ListenAddress
from openipu.vipu.api.endpoints import Endpoints
from openipu.vipu.api.guard import RequestGuard
from tests.attack import defences
from tests.integration.vipu_servers import Client, Process, run
from tests.waiting import until

CALLS = 40
SECONDS_OF_CALL = 0.005  # what a slow controller takes to authenticate a call: a flood outpaces it on any machine

_bind = Endpoints.bind
_service = RequestGuard.service


def one_endpoint(self: Endpoints) -> list[ListenAddress]:
    """Serve administrators on the endpoint of users only."""
    self._options = replace(self._options, admin=None)
    return _bind(self)


def slow_service(self: RequestGuard, details: grpc.HandlerCallDetails) -> Any:
    """Take longer for a call than a flood takes to begin one."""
    time.sleep(SECONDS_OF_CALL)
    return _service(self, details)


@pytest.fixture
def slow_controller(defence: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow down the controllers of a test, with its defence on and off."""
    defences.replace(monkeypatch, defences.Switch("openipu.vipu.api.guard.RequestGuard.service", slow_service))


@contextmanager
def flood(address: str, certificate: Path) -> Iterator[None]:
    """Flood an endpoint with calls without credentials."""
    method = "/virmgrpc.UserService/GetPartitionStatus"
    command = [sys.executable, "-m", "tests.attack.call_flood", address, method, str(certificate)]
    sender = subprocess.Popen(command)
    try:
        yield
        assert sender.poll() is None, "the flood has ended by itself"
    finally:
        sender.kill()
        sender.wait()


@pytest.mark.long
@pytest.mark.usefixtures("slow_controller")
@pytest.mark.defence("openipu.vipu.api.endpoints.Endpoints.bind", one_endpoint)
def test_administrators_have_their_own_endpoint(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    certs, database = tmp_path / "vipu-certs", tmp_path / "vipu-server.db"
    made = run("--tls-init", str(certs), "--init", "--secure", "--database", str(database))
    assert made.returncode == 0, made.stderr
    key = re.findall(r'api-access-key="(.*)"', (tmp_path / "admin.vipu-cli.hcl").read_text())[0]
    metadata = ((USER_ID_METADATA, "admin"), (ACCESS_KEY_METADATA, key))
    client = certs / "client"
    files = [(client / name).read_bytes() for name in ("ca.crt", "client.key", "client.crt")]
    credentials = grpc.ssl_channel_credentials(*files)
    options = ("--secure", "--certs", str(certs), "--admin-port", "0", "--admin-on-both", "--log-level", "error")
    server = vipu_process(*options, channel=credentials)
    administrators = Client(re.findall(r"127\.0\.0\.1:\d+", server.ready)[-1], credentials)

    def works(endpoint: Client) -> bool:
        try:
            endpoint.admin.ListUsers(admin.ListUsersRequest(), metadata=metadata, timeout=10)
        except grpc.RpcError:
            return False
        return True

    assert works(server)
    with flood(server.address, client):
        until(lambda: not works(server), 60, "users are served in spite of the flood")
        assert all(works(administrators) for _ in range(CALLS))
    administrators.close()
