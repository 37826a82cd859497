# SPDX-License-Identifier: GPL-3.0-or-later
"""Metadata that is made to appear in the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from openipu.shared.vipu.client import ACCESS_KEY_METADATA
from openipu.shared.vipu.contract import virmgrpc
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
