# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that are made to appear in the log, with secrets or too often."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from openipu.process.log_rate import MAX_LINES
from openipu.shared.vipu.client import ACCESS_KEY_METADATA, USER_ID_METADATA
from openipu.shared.vipu.contract import virmgrpc
from openipu.vipu.tls import issue
from tests.attack import http2
from tests.integration.vipu_servers import Process
from tests.waiting import until

VERSION = "/virmgrpc.VersionService/GetVersion"


def every_record(record: object) -> bool:
    """Log all records."""
    return True


@pytest.mark.defence("openipu.process.log.without_metadata", every_record)
def test_access_keys_that_are_not_text(vipu_process: Callable[..., Process]) -> None:
    server = vipu_process("--log-level", "debug")
    connection = http2.Connection(server.address)
    connection.begin(VERSION, 0, 0, {ACCESS_KEY_METADATA: b"secret\xff"})
    until(lambda: any("VersionService" in line for line in server.errors))
    connection.close()
    server.version.GetVersion(virmgrpc.VersionRequest(), timeout=10)
    assert server.stop() == 0
    assert "secret" not in "".join(server.errors)


@pytest.mark.defence("openipu.process.log_rate.MAX_LINES", 1 << 40)
def test_rejected_calls_do_not_fill_the_log(vipu_process: Callable[..., Process], tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    issue.create(certs, ["127.0.0.1"])
    ca, key, certificate = (certs / "client" / name for name in ("ca.crt", "client.key", "client.crt"))
    channel = grpc.ssl_channel_credentials(ca.read_bytes(), key.read_bytes(), certificate.read_bytes())
    server = vipu_process("--secure", "--certs", str(certs), channel=channel)
    for number in range(500):
        metadata = ((USER_ID_METADATA, f"user{number}"), (ACCESS_KEY_METADATA, "wrong"))
        with pytest.raises(grpc.RpcError):
            server.user.ListPartitions(virmgrpc.ListPartitionsRequest(), metadata=metadata, timeout=10)
    assert server.stop() == 0
    rejected = [line for line in server.errors if "request rejected" in line]
    assert 0 < len(rejected) <= MAX_LINES
    assert "user0" in rejected[0] and "party" not in rejected[0]
