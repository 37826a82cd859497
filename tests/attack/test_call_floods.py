# SPDX-License-Identifier: GPL-3.0-or-later
"""Floods of unfinished calls, faster than the controller can read them, by any holder of a client certificate."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import admin
from openipu.vipu.api.endpoints import Endpoints, ListenAddress
from tests.integration.vipu_servers import Client, Process, run
from tests.waiting import until

CALLS = 40
SENDERS = 3  # processes; one does not suffice on a quiet machine, where the controller has a core of its own

_bind = Endpoints.bind


def one_endpoint(self: Endpoints) -> list[ListenAddress]:
    """Serve administrators on the endpoint of users only."""
    self._options = replace(self._options, admin=None)
    return _bind(self)


@contextmanager
def flood(address: str, certificate: Path) -> Iterator[None]:
    """Flood an endpoint with calls without credentials."""
    method = "/virmgrpc.UserService/GetPartitionStatus"
    command = [sys.executable, "-m", "tests.attack.call_flood", address, method, str(certificate)]
    senders = [subprocess.Popen(command) for _ in range(SENDERS)]
    try:
        yield
        assert [each.poll() for each in senders] == [None] * SENDERS, "the flood has ended by itself"
    finally:
        for each in senders:
            each.kill()
            each.wait()


@pytest.mark.long  # the flood needs a core of its own
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
            endpoint.admin.ListUsers(admin.ListUsersRequest(), metadata=metadata, timeout=30)
        except grpc.RpcError:
            return False
        return True

    assert works(server)
    with flood(server.address, client):
        until(lambda: not works(server), 60)
        assert sum(works(administrators) for _ in range(CALLS)) == CALLS
    administrators.close()
